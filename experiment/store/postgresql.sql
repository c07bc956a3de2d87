-- What wrods asks PostgreSQL; each statement stands under its name.

-- name: is_served
-- `wrods serve` holds an advisory lock of two numbers; no other part of wrods does
SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND granted AND objsubid = 2 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))

-- name: oldest_transaction
SELECT pid, usename, xact_start
FROM pg_stat_activity
WHERE datname = current_database()
  AND backend_xmin IS NOT NULL
  AND pid <> pg_backend_pid()
ORDER BY xact_start LIMIT 1

-- name: stale_statistics
SELECT format('ALTER TABLE %I ALTER COLUMN %I TYPE text', tablename, attname)
FROM pg_stats
JOIN pg_attribute USING (attname)
WHERE schemaname = current_schema()
  AND tablename = ANY(:tables)
  AND attrelid = to_regclass(tablename)
  AND atttypid = 'text'::regtype
  AND pg_relation_size(attrelid) = 0

-- name: not_owned
SELECT format('the role %I may not rewrite it. A database administrator runs: ALTER DATABASE %I OWNER TO %I;', current_user, current_database(), current_user)

-- name: missing_rights
SELECT format('GRANT pg_checkpoint TO %I;', current_user)
WHERE NOT (SELECT rolsuper FROM pg_roles WHERE rolname = current_user)
  AND NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'pg_checkpoint' AND pg_has_role(oid, 'USAGE'))
UNION ALL SELECT format('GRANT EXECUTE ON FUNCTION %s TO %I;', f, current_user)
FROM unnest(ARRAY['pg_switch_wal()', 'pg_ls_waldir()']) AS f
WHERE NOT has_function_privilege(f, 'EXECUTE')

-- name: log_stays
SELECT format('PostgreSQL''s write-ahead log: the role %I may not overwrite it. It holds the answers until about %s of later changes have overwritten it (max_wal_size; wal_keep_size is %s).', current_user, current_setting('max_wal_size'), current_setting('wal_keep_size'))

-- name: log_sizes
-- in bytes; pg_settings has the second in megabytes
SELECT (SELECT setting::bigint FROM pg_settings WHERE name = 'wal_segment_size') AS segment, (SELECT setting::bigint * 1048576 FROM pg_settings WHERE name = 'wal_keep_size') AS kept

-- name: log_files
SELECT substr(name, 9)
FROM pg_ls_waldir()
WHERE name ~ '^[0-9A-F]{24}$'

-- name: current_log_file
SELECT div(pg_current_wal_insert_lsn() - '0/0', :size)

-- name: log_keepers
SELECT 'replication slot ' || quote_ident(slot_name)
FROM pg_replication_slots
WHERE restart_lsn - '0/0' < :start
UNION ALL SELECT 'the archive, which has not taken them yet'
WHERE current_setting('archive_mode') <> 'off'

-- name: copies_elsewhere
SELECT 'the archive of PostgreSQL''s write-ahead log (archive_mode ' || current_setting('archive_mode') || '): files archived so far hold the answers until they are deleted there'
WHERE current_setting('archive_mode') <> 'off'
UNION ALL SELECT 'a standby or subscriber of the database (' || coalesce(nullif(application_name, ''), 'process ' || pid) || '): its own files and write-ahead log'
FROM pg_stat_replication
UNION ALL SELECT 'PostgreSQL''s server log (' || name || ' is ' || setting || '): statements are logged with their values'
FROM pg_settings
WHERE (name = 'log_statement' AND setting IN ('mod', 'all'))
  OR (name IN ('log_min_duration_statement', 'log_min_duration_sample') AND setting <> '-1')

-- name: other_programs
SELECT pid, usename, application_name, backend_start
FROM pg_stat_activity
WHERE datname = current_database()
  AND backend_type = 'client backend'
  AND pid <> pg_backend_pid()
ORDER BY backend_start LIMIT 1

-- name: other_servers
SELECT a.application_name, a.backend_start
FROM pg_locks l
JOIN pg_stat_activity a ON a.pid = l.pid
WHERE l.locktype = 'advisory'
  AND l.granted
  AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND l.objsubid = 2
  AND l.classid::bigint = :study
  AND l.objid::bigint <> :key
ORDER BY a.backend_start LIMIT 1
