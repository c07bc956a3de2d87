# Recomputes the report's differences in shares in base R and refits every model with lme4, each on its own rows in models/, and
# compares each with the report.
#   Rscript models.R          one line a model: agrees, or differs by how much; ends with status 1 where any differs
#   Rscript models.R 3 7      the same of models 3 and 7
#   Rscript models.R print    prints the models as well
#   Rscript models.R estimates    the differences in shares alone
# Run it in the report's folder. Model numbers are those of numbers.json, which names the tables and paragraphs that show each.
# What lme4 does not compute (times in milliseconds by maximum likelihood, penalties …) is written out over lme4's matrices.
if (!l10n_info()[["UTF-8"]]) invisible(suppressWarnings(Sys.setlocale("LC_CTYPE", "C.UTF-8")))
library(lme4)
library(Matrix)
library(splines)
given <- commandArgs(trailingOnly = TRUE)
asked <- suppressWarnings(as.integer(setdiff(given, c("print", "estimates"))))
if (anyNA(asked)) stop("after models.R stand numbers of models, print or estimates; not: ", paste(given, collapse = " "))
if ("estimates" %in% given) asked <- 0L
wants_estimates <- !length(asked) || "estimates" %in% given
say <- cat
# Summaries that nobody asked for are not computed.
if (!"print" %in% given) print <- cat <- function(...) invisible()

rows_of <- function(file) read.csv(file, colClasses = "character", check.names = FALSE, na.strings = "",
  fileEncoding = "UTF-8-BOM")

triangle <- function(v) { v <- as.matrix(v); v[lower.tri(v, diag = TRUE)] }

# What R found: of lme4's model m, or of what was written out.
is_here <- function(name) exists(name, globalenv(), inherits = FALSE)
found_by_r <- function() {
  if (is_here("m")) {
    found <- list(rows = nobs(m), terms = names(fixef(m)), estimate = unname(fixef(m)), vcov = as.matrix(vcov(m)),
      loglik = if (is_here("log_likelihood")) log_likelihood else as.numeric(logLik(m)),
      variance = unlist(lapply(VarCorr(m), triangle), use.names = FALSE))
    if (isLMM(m)) found$variance <- c(found$variance, sigma(m)^2)
    return(found)
  }
  spreads <- lapply(seq_along(basis), function(t) triangle(tcrossprod(basis[[t]] %*% template(par, t))))
  list(rows = length(y), terms = rownames(fixed), estimate = fixed$Estimate, vcov = as.matrix(vcov), loglik = log_likelihood,
    variance = unlist(spreads, use.names = FALSE), dispersion = if (has_dispersion) exp(par[n_theta + 1]))
}

# glmer's standard errors are differences of a deviance that it finds to a tolerance, and its search may end just short of the
# highest likelihood: slope and curvature of its own deviance by wider steps, extrapolated, around the best values so far,
# and the maximum to which one Newton step from there leads.
by_wider_steps <- function(found, report, width) {
  deviance_of <- update(m, devFunOnly = TRUE)
  begun <- eval(getCall(m)$start)
  places <- list(c(getME(m, "theta"), found$estimate), c(begun$theta, begun$fixef))
  at <- places[[which.min(sapply(places, deviance_of))]]
  n <- length(getME(m, "theta"))
  theta <- at[seq_len(n)]
  unit <- c(rep(0.1 * max(theta, 0.2), n), report$se)
  free <- c(theta > 1e-4 | getME(m, "lower")[seq_len(n)] < 0, rep(TRUE, length(report$se)))
  beside <- function(z) deviance_of(replace(at, free, at[free] + z * unit[free]))
  H <- numDeriv::hessian(beside, 0 * at[free], method.args = list(eps = width, r = 2))
  at[free] <- at[free] - unit[free] * solve(H, numDeriv::grad(beside, 0 * at[free], method.args = list(eps = width, r = 2)))
  V <- 2 * solve(H) * outer(unit[free], unit[free])
  last <- seq(to = nrow(V), length.out = length(report$se))
  found$estimate <- at[-seq_len(n)]
  found$vcov <- V[last, last, drop = FALSE]
  found$loglik <- found$loglik + (deviance_of(places[[1]]) - deviance_of(at)) / 2
  found$variance <- spreads_at(at[seq_len(n)])
  found
}

# Variances and covariances at values of theta, as VarCorr has them.
spreads_at <- function(theta) {
  terms <- getME(m, "cnms")
  sizes <- lengths(terms) * (lengths(terms) + 1) / 2
  unlist(lapply(seq_along(terms), function(t) {
    L <- matrix(0, length(terms[[t]]), length(terms[[t]]))
    L[lower.tri(L, diag = TRUE)] <- theta[sum(sizes[seq_len(t - 1)]) + seq_len(sizes[t])]
    triangle(tcrossprod(L))
  }))
}

# Each kind of number: how far apart at most, and how far apart it may be. Linear models are found more exactly.
apart <- function(found, report) {
  linear <- report$linear
  se <- sqrt(diag(found$vcov))
  most <- function(x) if (length(x)) max(abs(x)) else 0
  kinds <- list(
    "fixed effects, in standard errors" = c(most((found$estimate - report$estimate) / se), if (linear) 1e-5 else 1e-3),
    "standard errors" = c(most(report$se / se - 1), if (linear) 1e-4 else if (report$singular || report$flat) 5e-3 else 1e-3),
    "log-likelihood, R's above" = c(max(0, found$loglik - report$loglik), if (linear) 1e-5 else 1e-3)
  )
  if (!report$singular)  # the variances of a singular fit are not unique
    kinds[["variance components"]] <-
      c(most(found$variance - report$variance) / most(found$variance), if (linear) 1e-3 else 2e-3)
  if (!is.null(found$dispersion)) kinds[["dispersion"]] <- c(most(report$dispersion / found$dispersion - 1), 2e-3)
  if (!is.null(report$weights)) {
    b <- drop(report$weights %*% found$estimate)
    b_se <- sqrt(diag(report$weights %*% found$vcov %*% t(report$weights)))
    kinds[["tested differences, in standard errors"]] <- c(most((b - report$b) / b_se), kinds[[1]][2])
    kinds[["standard errors of tested differences"]] <- c(most(report$b_se / b_se - 1), kinds[[2]][2])
    print(data.frame(b = b, b_report = report$b, se = b_se, se_report = report$b_se, row.names = rownames(report$weights)))
    if (linear && !all(is.na(report$df))) {
      df <- lmerTest::contest(m, report$weights, joint = FALSE)$df
      block <- as.matrix(report$weights %*% found$vcov %*% t(report$weights))
      into_family(report$family, Map(function(k, test) list(t = b[[k]] / b_se[[k]], df = df[[k]], se = b_se[[k]], estimate = b[[k]],
        block = block, place = k, test = test), seq_along(b), report$tests))
      kinds[["degrees of freedom"]] <- c(most((df / report$df - 1)[!is.na(report$df)]), 1e-3)
    }
  }
  data.frame(kind = names(kinds), apart = sapply(kinds, `[`, 1), allowed = sapply(kinds, `[`, 2))
}

compared <- function(report) {
  found <- found_by_r()
  if (found$rows != report$rows) stop("R uses ", found$rows, " rows, the report ", report$rows)
  if (!identical(found$terms, report$terms)) stop("R has other fixed effects: ", paste(found$terms, collapse = ", "))
  held <- apart(found, report)
  note <- NULL
  if (!all(held$apart <= held$allowed) && is_here("m") && isGLMM(m)) for (width in c(0.1, 0.5)) {
    wider <- tryCatch(apart(by_wider_steps(found, report, width), report), error = function(e) held)
    if (all(wider$apart <= wider$allowed)) {
      note <- c(note, sprintf("glmer's own standard errors are rough, off by %.2g; these are of its deviance by wider steps", held$apart[2]))
      held <- wider
      break
    }
  }
  short <- report$loglik - found$loglik
  if (short > held$allowed[3])
    note <- c(note, sprintf("R stops %.2g short of the report's log-likelihood", short))
  list(held = held, note = note)
}

agreed <- logical()
kept <- NULL
refit <- function(number, title, code, note = NULL, no_maximum = NULL) {
  if (length(asked) && !number %in% asked) return(invisible())
  if (!is.null(no_maximum)) {
    say(sprintf("model %d: not compared, since its likelihood has no maximum (%s). %s\n", number, no_maximum, title))
    return(invisible())
  }
  code <- substitute(code)
  quiet <- function(told) function(w) invokeRestart(told)
  done <- tryCatch(
    withCallingHandlers({
      eval(code, globalenv())
      compared(get("report", globalenv()))
    }, warning = quiet("muffleWarning"), message = quiet("muffleMessage")),
    error = function(e) conditionMessage(e)
  )
  if (is.character(done)) {
    agreed[as.character(number)] <<- FALSE
    said <- paste("could not be held against the report:", gsub("\\s+", " ", done))
  } else {
    held <- done$held
    beyond <- !(held$apart <= held$allowed)
    agreed[as.character(number)] <<- !any(beyond)
    shown <- if (any(beyond)) held[beyond, ] else held[which.max(held$apart / held$allowed), ]
    told <- paste0(sprintf("%.2g", shown$apart), " (", shown$kind, ")", collapse = ", ")
    said <- if (any(beyond)) paste("DIFFERS by", told) else paste("agrees; largest relative difference", told)
    note <- c(note, done$note)
  }
  say(sprintf("model %d: %s%s. %s\n", number, said, if (length(note)) paste0(" [", paste(note, collapse = "; "), "]") else "", title))
  rm(list = setdiff(ls(globalenv()), kept), envir = globalenv())
}
library(lmerTest)  # Satterthwaite degrees of freedom

# Recomputes the planned and exploratory differences in shares (or ratings) in base R, each from its rows in models/, and compares them with
# the report. The estimate is a weighted sum of condition means in which every item counts alike; its variance adds what
# participants and what items contribute and subtracts what both contain. Of a model, the mean answer to an item in a condition is
# subtracted from people's answers. Simultaneous p values and intervals are simulated (200,000 draws of correlated t).
shares_of <- function(file) {
  d <- read.csv(file, colClasses = "character", check.names = FALSE, na.strings = "", fileEncoding = "UTF-8-BOM")
  d$value <- as.numeric(d$value)
  d$person <- d$person == "TRUE"
  d
}

# A model's answers, averaged over repetitions and then over prompt variants: items in rows, conditions in columns.
model_means <- function(d, conditions, items) {
  by_variant <- aggregate(value ~ item + condition + variant, d, mean)
  cells <- aggregate(value ~ item + condition, by_variant, mean)
  m <- matrix(NA_real_, length(items), length(conditions), dimnames = list(items, conditions))
  m[cbind(cells$item, cells$condition)] <- cells$value
  m
}

# Connected groups of participants and items: the label of each.
blocks_of <- function(a, b) {
  label <- seq_along(unique(a))
  names(label) <- unique(a)
  repeat {
    of_b <- tapply(label[a], b, min)
    now <- tapply(of_b[b], a, min)[names(label)]
    if (all(now == label)) break
    label <- setNames(as.vector(now), names(label))
  }
  list(a = label, b = tapply(label[a], b, min))
}

# What participants, items and answers add to the error of each condition's mean, people's answers less the model's.
sums_of_people <- function(d, conditions, span, m = NULL) {
  d <- aggregate(value ~ participant + item + condition, d, mean)
  lapply(setNames(conditions, conditions), function(name) {
    own <- d[d$condition == name, ]
    if (!is.null(m)) own <- own[!is.na(m[own$item, name]), ]
    if (!nrow(own)) return(NULL)
    y <- own$value
    p <- own$participant
    i <- own$item
    z <- if (is.null(m)) y else y - m[i, name]
    n_p <- table(p)[p]
    n_i <- table(i)[i]
    each <- as.vector(1 / (length(unique(i)) * n_i))
    apart <- function(unit, n) {
      r <- (z - ave(z, unit)) * sqrt(n / pmax(n - 1, 1))
      as.vector(ifelse(n == 1, z - mean(z), r))
    }
    left <- z - mean(z)
    for (step in 1:2000) {
      before <- left
      left <- left - ave(left, p)
      left <- left - ave(left, i)
      if (max(abs(left - before)) < 1e-12) break
    }
    blocks <- blocks_of(p, i)
    df <- length(z) - length(unique(p)) - length(unique(i)) + length(unique(blocks$a))
    rare <- min(sum(y != span[1]), sum(y != span[2])) < 3
    q <- min(0.5, 3 / length(y))
    list(mean = sum(each * z), participants = tapply(each * apart(i, n_i), p, sum), items = tapply(each * apart(p, n_p), i, sum),
      answers = setNames(if (df > 0) each * left * sqrt(length(z) / df) else 0 * z, paste(p, i, sep = "\r")),
      blocks = blocks, least = if (rare) q * (1 - q) / length(y) * diff(span)^2 else 0)
  })
}

sums_of_model <- function(m) {
  lapply(setNames(colnames(m), colnames(m)), function(name) {
    v <- m[!is.na(m[, name]), name]
    n <- length(v)
    if (!n) return(NULL)
    items <- (v - mean(v)) * if (n > 1) sqrt(n / (n - 1)) / n else 1
    list(mean = mean(v), participants = numeric(), items = items, answers = numeric(),
      blocks = list(a = integer(), b = setNames(rep(1, n), names(v))), least = 0)
  })
}

weighed <- function(sums, part, w, sign = 1) {
  parts <- unlist(lapply(names(w), function(name) sign * w[[name]] * sums[[name]][[part]]), use.names = FALSE)
  if (!length(parts)) return(numeric())
  unit <- unlist(lapply(names(w), function(name) names(sums[[name]][[part]])))
  found <- tapply(parts, unit, sum)
  setNames(as.vector(found), names(found))
}

# Sum of squares of what units add, with its degrees of freedom; units of other conditions have a variance of their own.
over_units <- function(u, sums, side, w) {
  if (!length(u)) return(c(0, 1))
  seen <- lapply(names(w), function(name) sums[[name]]$blocks[[side]])
  pairs <- do.call(rbind, lapply(seq_along(seen), function(k)
    data.frame(unit = names(seen[[k]]), stratum = paste(k, seen[[k]]), condition = k)))
  component <- blocks_of(pairs$unit, pairs$stratum)$a[names(u)]
  shown <- tapply(pairs$condition, component[pairs$unit], function(k) paste(sort(unique(k)), collapse = " "))
  group <- shown[as.character(component)]
  total <- below <- freedoms <- 0
  for (g in unique(group)) {
    own <- names(u)[group == g]
    within <- sapply(seen, function(b) length(unique(b[intersect(own, names(b))])))
    df <- max(length(own) - max(length(unique(component[own])), within), 1)
    square <- sum(u[own]^2)
    total <- total + square
    below <- below + square^2 / df
    freedoms <- freedoms + df
  }
  c(total, if (below > 0) total^2 / below else freedoms)
}

# What one more item that differs adds to the variance of a model that answers hardly any items differently.
one_more <- function(m, w) {
  v <- m[, names(w), drop = FALSE]
  whole <- rowSums(is.na(v)) == 0
  added <- 0
  n <- sum(whole)
  if (length(w) > 1 && n > 1) {
    each <- round(drop(v[whole, , drop = FALSE] %*% w), 9)
    most <- max(table(each))
    if (sum(each != 0) < 5 || (n - most < 5 && most > n / 2)) added <- added + max(abs(w))^2 / (n * (n - 1))
  }
  if (length(w) == 1 || n < 2) for (name in names(w)) {
    own <- v[!is.na(v[, name]), name]
    n <- length(own)
    if (n > 1 && n - max(table(own)) < 3) added <- added + w[[name]]^2 / (n * (n - 1))
  }
  added
}

estimated <- function(d, groups, w, fixed_items, span) {
  unit <- if (is.null(span)) 100 else 1
  if (is.null(span)) span <- c(0, 1)
  w <- w[w != 0]
  conditions <- sort(unique(d$condition))
  items <- unique(d$item)
  own <- lapply(groups, function(g) d[d$group == g, ])
  person <- sapply(own, function(o) any(o$person))
  means <- lapply(own, model_means, conditions, items)
  sign <- 1
  m <- NULL
  if (!any(person)) {
    m <- if (length(groups) > 1) means[[1]] - means[[2]] else means[[1]]
    sums <- sums_of_model(m)
  } else if (all(person) && length(groups) > 1) {
    stop("two groups of people are not compared here")
  } else {
    if (length(groups) > 1) m <- means[[which(!person)]]
    sums <- sums_of_people(own[[which(person)]], conditions, span, m)
    if (length(groups) > 1 && person[2]) sign <- -1
  }
  u <- lapply(c(participants = "participants", items = "items", answers = "answers"), function(part) weighed(sums, part, w, sign))
  of_p <- over_units(u$participants, sums, "a", w)
  of_i <- over_units(u$items, sums, "b", w)
  both <- sum(u$answers^2)
  least <- sum(w^2 * sapply(names(w), function(name) sums[[name]]$least))
  value <- sign * sum(w * sapply(names(w), function(name) sums[[name]]$mean))
  v_i <- of_i[1] + if (is.null(m)) 0 else one_more(m, w) * diff(span)^2
  if (fixed_items) {
    variance <- max(of_p[1], least)
    df <- of_p[2]
  } else if (!any(person)) {
    variance <- v_i
    df <- of_i[2]
  } else if (length(u$participants) == 1) {
    variance <- max(v_i, least)
    df <- of_i[2]
  } else {
    variance <- max(of_p[1] + v_i - both, of_p[1], v_i, least)
    below <- of_p[1]^2 / of_p[2] + v_i^2 / of_i[2]
    df <- if (below > 0) variance^2 / below else min(of_p[2], of_i[2])
    df <- min(max(df, min(of_p[2], of_i[2])), of_p[2] + of_i[2])
  }
  c(list(estimate = unit * value, se = unit * sqrt(variance), df = df), u)
}

# The tests of a family: of shares what their estimates share, of a mixed model a block of covariances.
families <- list()
into_family <- function(family, tests) if (nzchar(family)) families[[family]] <<- c(families[[family]], tests)

estimate_shares <- function(number, title, file, family, report, fixed_items = FALSE, span = NULL) {
  if (!wants_estimates) return(invisible())
  d <- shares_of(file)
  found <- lapply(report$tests, function(one) estimated(d, one$groups, one$weights, fixed_items, span))
  into_family(family, Map(function(one, test) c(one[c("participants", "items", "answers")],
    list(t = t_of(one$estimate, one$se), df = one$df, se = one$se, estimate = one$estimate, test = test, of = title)), found, report$tests))
  value <- function(name, list) sapply(list, `[[`, name)
  own <- lapply(c(estimate = "estimate", se = "se", df = "df"), value, found)
  of_report <- lapply(c(estimate = "estimate", se = "se", df = "df", p = "p", side = "side"), value, report$tests)
  apart <- function(name, unit) max(ifelse(own[[name]] == of_report[[name]], 0, abs(own[[name]] - of_report[[name]]) / own[[unit]]))
  off <- c(
    "estimates, in standard errors" = apart("estimate", "se"),
    "standard errors" = apart("se", "se"),
    "degrees of freedom" = apart("df", "df"),
    "p" = max(abs(of_report$p - mapply(p_of, t_of(own$estimate, own$se), own$df, of_report$side))))
  told(sprintf("estimates %d", number), off, 1e-6, title)
}

# A difference without a standard error is known exactly.
t_of <- function(estimate, se) ifelse(se > 0, estimate / se, ifelse(estimate == 0, 0, sign(estimate) * Inf))

p_of <- function(t, df, side) if (side) pt(side * t, df, lower.tail = FALSE) else 2 * pt(abs(t), df, lower.tail = FALSE)

told <- function(what, off, allowed, title) {
  beyond <- !(off <= allowed)
  agreed[what] <<- !any(beyond)
  shown <- if (any(beyond)) off[beyond] else off[which.max(off)]
  said <- paste0(sprintf("%.2g", shown), " (", names(shown), ")", collapse = ", ")
  say(sprintf("%s: %s %s. %s\n", what, if (any(beyond)) "DIFFERS by" else "agrees; largest difference", said, title))
}

# Bayes factors and posteriors: the integral of a t likelihood (estimate, standard error, df) over the plan's prior.
check_bayes <- function(family, tests) {
  if (!length(tests)) return(invisible())
  each <- sapply(tests, function(one) {
    own <- one$test
    weigh <- function(x) dt((x - one$estimate) / one$se, one$df) / dt(0, one$df) * dt(x / own$prior_scale, own$prior_df) / own$prior_scale
    steps <- c(one$se, own$prior_scale) %o% 2^(-3:23)
    ends <- sort(unique(c(0, one$estimate, one$estimate + steps[1, ], one$estimate - steps[1, ], steps[2, ], -steps[2, ])))
    if (own$side) ends <- ends[own$side * ends >= 0]
    mass <- function(low, high) {
      at <- c(low, ends[ends > low & ends < high], high)
      sum(mapply(function(a, b) integrate(weigh, a, b, rel.tol = 1e-10, stop.on.error = FALSE)$value, head(at, -1), tail(at, -1)))
    }
    all <- mass(ends[1], ends[length(ends)])
    share <- function(x) mass(ends[1], x) / all
    factor <- all * (if (own$side) 2 else 1) * dt(0, one$df) / dt(one$estimate / one$se, one$df)
    within <- if (is.na(own$bound)) NA else {
      inside <- share(own$bound) - share(-own$bound)
      before <- 1 - 2 * pt(-own$bound / own$prior_scale, own$prior_df)
      inside / (1 - inside) / (before / (1 - before))
    }
    c("Bayes factor" = own$factor / factor - 1, "Bayes factor of the bound" = if (is.na(within)) 0 else own$within / within - 1,
      "posterior" = max(abs(sapply(own[c("posterior_low", "median", "posterior_high")], share) - c(0.025, 0.5, 0.975))))
  })
  told(paste("Bayes factors,", family), apply(abs(each), 1, max), if (is.null(tests[[1]]$block)) 1e-5 else 0.02, sprintf("(%d tests)", length(tests)))
}

# Adjusted p values and intervals by the largest of correlated |t|, from 200,000 draws. Each t counts as the t with the same tail at
# the largest degrees of freedom of the family; no p exceeds Bonferroni's. `untested` are the sides of tests that are not estimable.
adjust_family <- function(family, tested, untested) {
  tests <- families[[family]]
  if (!wants_estimates) return(invisible())
  check_bayes(family, Filter(function(one) !is.null(one$test$factor), tests))
  if (length(tests) < tested) return(invisible())
  r <- length(tests)
  all_tests <- r + length(untested)
  cov <- diag(r)
  across <- function(part, j, k) {
    a <- tests[[j]][[part]]
    b <- tests[[k]][[part]]
    both <- intersect(names(a), names(b))
    sum(a[both] * b[both])
  }
  for (j in seq_len(r)) for (k in seq_len(r)) {
    a <- tests[[j]]
    b <- tests[[k]]
    if (is.null(a$block) && is.null(b$block)) {
      cov[j, k] <- across("participants", j, k) + across("items", j, k) - across("answers", j, k)
    } else if (!is.null(a$block) && identical(a$block, b$block)) cov[j, k] <- a$block[a$place, b$place]
  }
  none <- diag(cov) <= 0
  cov[none, ] <- cov[, none] <- 0
  diag(cov)[none] <- 1
  R <- cov2cor(cov)
  e <- eigen(R, symmetric = TRUE)
  R <- cov2cor(e$vectors %*% (pmax(e$values, 0) * t(e$vectors)))
  R <- rbind(cbind(R, matrix(0, r, all_tests - r)), cbind(matrix(0, all_tests - r, r), diag(all_tests - r)))
  own_df <- sapply(tests, `[[`, "df")
  df <- max(own_df)
  t_value <- sapply(tests, `[[`, "t")
  side <- sapply(tests, function(one) one$test$side)
  alpha <- sapply(tests, function(one) one$test$alpha)
  sides <- c(side, untested)
  tails <- sum(ifelse(sides != 0, 1, 2))
  tail <- pt(ifelse(side != 0, side * t_value, abs(t_value)), own_df, lower.tail = FALSE)
  p <- pmin(1, tails * tail)
  limit <- alpha / tails
  if (length(sides) > 1) {
    set.seed(1)
    e <- eigen(R, symmetric = TRUE)
    draws <- 200000
    z <- matrix(rnorm(draws * nrow(R)), draws) %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
    if (is.finite(df)) z <- z / sqrt(rchisq(draws, df) / df)
    z <- sapply(seq_len(ncol(z)), function(k) if (sides[k]) sides[k] * z[, k] else abs(z[, k]))
    largest <- sort(do.call(pmax, as.data.frame(z)))
    joint <- 1 - findInterval(qt(tail, df, lower.tail = FALSE), largest, left.open = TRUE) / draws
    p <- pmin(p, joint)
    limit <- pmax(limit, pt(quantile(largest, 1 - alpha, names = FALSE), df, lower.tail = FALSE))
  }
  reach <- qt(limit, own_df, lower.tail = FALSE)
  report <- function(name) sapply(tests, function(one) one$test[[name]])
  se <- sapply(tests, `[[`, "se")
  estimate <- sapply(tests, `[[`, "estimate")
  furthest <- report("furthest")
  low <- ifelse(side < 0, -Inf, pmax(estimate - reach * se, -furthest))
  high <- ifelse(side > 0, Inf, pmin(estimate + reach * se, furthest))
  apart <- function(a, b) ifelse(is.finite(a) | is.finite(b), abs(a - b), 0)
  # A difference that another family tests too can have that family's p and interval, which is then the wider.
  own <- !sapply(tests, function(one) isTRUE(one$test$elsewhere == 1))
  # drawn ends scatter with their distance from the estimate, which few degrees of freedom make long
  half <- pmax(reach, 1) * se
  ends <- pmax(apart(low, report("low")), apart(high, report("high"))) / half
  narrower <- pmax(ifelse(is.finite(low), report("low") - low, 0), ifelse(is.finite(high), high - report("high"), 0)) / half
  off <- c(
    "adjusted p" = max(abs(p - report("p_adjusted"))[own], 0),
    "ends of intervals, in half-widths" = max(ends[own], narrower[!own]))
  told(paste("family", family), off, c(0.01, 0.02), sprintf("(%d test%s; simulated)", all_tests, if (all_tests == 1) "" else "s"))
}

criterion <- function() eval.parent(quote({
# The integral over random effects with lme4's matrices; basis[[t]] %*% template(par, t) is a factor of the covariance of
# term t, in columns that are orthonormal over rows.
random <- parts$reTrms
X <- parts$X
y <- model.response(parts$fr)
w <- model.weights(parts$fr)
if (is.matrix(y)) { w <- rowSums(y); y <- ifelse(w > 0, y[, 1] / w, 0) }
if (is.factor(y)) y <- as.integer(y) - 1
y <- as.numeric(y)
if (is.null(w)) w <- rep(1, length(y))
known <- model.offset(parts$fr)
if (is.null(known)) known <- rep(0, length(y))
widths <- vapply(basis, nrow, 0L)
sizes <- widths * (widths + 1) / 2
n_theta <- sum(sizes)
mode <- rep(0, NROW(random$Zt))

template <- function(par, t) {
  M <- matrix(0, widths[t], widths[t])
  M[lower.tri(M, diag = TRUE)] <- par[sum(sizes[seq_len(t - 1)]) + seq_len(sizes[t])]
  M
}
score <- function(eta, d) {
  mu <- family$linkinv(eta)
  w * (y - mu) * family$mu.eta(eta) / variance(mu, d)
}
expected <- function(eta, d) w * family$mu.eta(eta)^2 / variance(family$linkinv(eta), d)
observed <- function(eta, d) {
  top <- max(abs(eta))
  h <- 1e-5 * pmax(abs(eta), 1e-3 * if (top > 0) top else 1)
  -(score(eta + h, d) - score(eta - h, d)) / (2 * h)
}
total <- function(eta, d) {
  mu <- family$linkinv(eta)
  if (any(!is.finite(mu)) || (positive && any(mu <= 0))) return(-Inf)
  sum(loglik(y, mu, w, d))
}
deviance_at <- function(par) {
  if (!length(basis)) {
    alone <- -2 * total(drop(X %*% par[seq_along(par) > n_theta + has_dispersion]) + known, if (has_dispersion) exp(par[1]) else 1)
    return(if (is.finite(alone)) alone else 1e10)
  }
  # lme4's triangle of each term, and the rotation Q from our spherical effects to lme4's.
  turned <- lapply(seq_along(basis), function(t) qr(t(basis[[t]] %*% template(par, t)), tol = 0))
  Lambdat <- random$Lambdat
  Lambdat@x <- unlist(lapply(turned, function(q) { L <- t(qr.R(q)); L[lower.tri(L, diag = TRUE)] }))[random$Lind]
  d <- if (has_dispersion) exp(par[n_theta + 1]) else 1
  A <- Lambdat %*% random$Zt
  fixed <- drop(X %*% par[seq_along(par) > n_theta + has_dispersion]) + known
  H_of <- function(info) forceSymmetric(A %*% Diagonal(x = info) %*% t(A) + Diagonal(nrow(A)))
  u <- mode
  eta <- fixed + drop(crossprod(A, u))
  now <- 2 * total(eta, d) - sum(u^2)
  if (!is.finite(now)) { u <- 0 * u; eta <- fixed; now <- 2 * total(eta, d) }
  if (!is.finite(now)) return(1e10)
  for (i in 1:200) {
    g <- drop(A %*% score(eta, d)) - u
    safe <- function(e) drop(as.matrix(solve(H_of(expected(eta, d)), g)))
    step <- tryCatch(drop(as.matrix(solve(Cholesky(H_of(observed(eta, d)), LDL = FALSE), g))), error = safe, warning = safe)
    size <- 1
    repeat {
      eta_new <- fixed + drop(crossprod(A, u + size * step))
      new <- 2 * total(eta_new, d) - sum((u + size * step)^2)
      if (is.na(new)) new <- -Inf
      if (new >= now - 1e-10 * abs(now) || size < 1e-10) break
      size <- size / 2
    }
    if (!is.finite(new)) return(1e10)
    u <- u + size * step; eta <- eta_new; now <- new
    if (sum(g * step) < 1e-16) break
  }
  mode <<- u
  H <- H_of(if (information == "observed") observed(eta, d) else expected(eta, d))
  if (points == 1) return(as.numeric(determinant(H, logarithm = TRUE)$modulus) - now)
  integral(u, H, A, fixed, d, as.matrix(bdiag(lapply(turned, qr.Q))))
}
}))

quadrature <- function() eval.parent(quote({
# Adaptive quadrature over all random effects of a level, at the product of Gauss-Hermite rules; nodes and weights from the
# recurrence of the polynomials (Golub and Welsch 1969).
recurrence <- matrix(0, points, points)
recurrence[cbind(2:points, 1:(points - 1))] <- recurrence[cbind(1:(points - 1), 2:points)] <- sqrt(1:(points - 1))
rule <- eigen(recurrence, symmetric = TRUE)
level <- as.integer(random$flist[[1]])
n_levels <- nlevels(random$flist[[1]])
place <- do.call(cbind, lapply(seq_along(basis), function(t)
  random$Gp[t] + outer((seq_len(n_levels) - 1) * widths[t], seq_len(widths[t]), "+")))
nodes <- as.matrix(expand.grid(rep(list(rule$values), ncol(place))))
log_weights <- rowSums(as.matrix(expand.grid(rep(list(log(rule$vectors[1, ]^2)), ncol(place))))) + rowSums(nodes^2) / 2

integral <- function(u, H, A, fixed, d, Q) {
  # In our spherical effects, as a product rule with few points depends on the axes.
  spreads <- lapply(seq_len(n_levels), function(j) {
    R <- chol(Q %*% as.matrix(H[place[j, ], place[j, ]]) %*% t(Q))
    list(S = t(Q) %*% backsolve(R, diag(ncol(place))), logdet = 2 * sum(log(diag(R))))
  })
  logs <- sapply(seq_len(nrow(nodes)), function(q) {
    moved <- u
    for (j in seq_len(n_levels)) moved[place[j, ]] <- u[place[j, ]] + drop(spreads[[j]]$S %*% nodes[q, ])
    mu <- family$linkinv(fixed + drop(crossprod(A, moved)))
    each <- suppressWarnings(loglik(y, mu, w, d))
    each[!is.finite(each)] <- -Inf
    as.vector(rowsum(each, level, reorder = TRUE)) - rowSums(matrix(moved[place]^2, n_levels)) / 2 + log_weights[q]
  })
  top <- apply(logs, 1, max)
  sum(sapply(spreads, `[[`, "logdet")) - 2 * sum(top + log(rowSums(exp(logs - top))))
}
}))

narrowed <- function() eval.parent(quote({
# From our estimates, in steps of their standard errors; coefficients along directions that X tells apart.
k <- length(start)
shape <- if (length(names)) solve(qr.R(qr(X))) else matrix(0, 0, 0)
others <- seq_len(k) <= k - length(names)
par_at <- function(z) start + c(z[others] * unit[others], drop(shape %*% (z[!others] * unit[!others])))
objective <- function(z) deviance_at(par_at(z)) + penalty(par_at(z))
z <- if (k > 1) minqa::bobyqa(0 * start, objective, control = list(rhobeg = 0.1, rhoend = 1e-7, maxfun = 1e5))$par else
  optimize(objective, c(-10, 10), tol = 1e-8)$minimum
par <- par_at(z)
curvature <- matrix(0, k, k)
h <- 0.03
for (i in seq_len(k)) for (j in seq_len(i)) {
  a <- replace(numeric(k), i, h); b <- replace(numeric(k), j, h)
  curvature[i, j] <- curvature[j, i] <-
    (objective(z + a + b) - objective(z + a - b) - objective(z - a + b) + objective(z - a - b)) / (4 * h^2)
}
moved <- diag(curvature) > 1e-8
vcov <- matrix(0, k, k)
vcov[moved, moved] <- 2 * solve(curvature[moved, moved])
spread <- shape %*% diag(unit[!others], length(names))
vcov <- spread %*% vcov[!others, !others, drop = FALSE] %*% t(spread)
fixed <- data.frame(Estimate = par[!others], "Std. Error" = sqrt(diag(vcov)), row.names = names, check.names = FALSE)
log_likelihood <- -deviance_at(par) / 2
print(fixed, digits = 6)
for (t in seq_along(basis)) {
  covariance <- tcrossprod(basis[[t]] %*% template(par, t))
  dimnames(covariance) <- list(random$cnms[[t]], random$cnms[[t]])
  cat("covariance by", names(random$cnms)[t], "\n")
  print(covariance, digits = 6)
}
}))

finer_degrees <- function() eval.parent(quote({
# lmerTest differentiates by steps of 1e-4 and more, too long for variance parameters this small: the same in their own units.
deviance_of <- update(m, devFunOnly = TRUE)
unit <- c(unit, sigma(m))
at <- c(m@theta, sigma(m)) / unit
H <- eigen(numDeriv::hessian(function(z) lmerTest:::devfun_vp(z * unit, deviance_of, getME(m, "is_REML")), at))
kept <- H$values > 1e-8 * max(H$values)
V <- H$vectors[, kept, drop = FALSE]
m@vcov_varpar <- 2 * outer(unit, unit) * (V %*% (t(V) / H$values[kept]))
slopes <- numDeriv::jacobian(function(z) lmerTest:::get_covbeta(z * unit, deviance_of), at)
m@Jac_list <- lapply(seq_along(unit), function(i) matrix(slopes[, i] / unit[i], length(m@beta)))
}))

kept <- ls(globalenv())

# Estimates 1: nonwords
estimate_shares(1, "nonwords", "models/estimates_01.csv", "measure: correct", list(tests = list(
  list(label = "transposed − replaced", groups = c("human"), weights = c("transposed" = 1, "replaced" = -1), estimate = -10.080152015, se = 1.36184255757, df = 120.207245444, p = 2.01012270793e-11, p_adjusted = 1.5595436475e-10, low = -13.6997460009, high = -6.46055802901, furthest = 100, side = 0, alpha = 0.05)
)), FALSE)

# Estimates 2: judgements
estimate_shares(2, "judgements", "models/estimates_02.csv", "measure: correct", list(tests = list(
  list(label = "transposed − replaced", groups = c("human"), weights = c("transposed" = 1, "replaced" = -1), estimate = -10.080152015, se = 1.36184255757, df = 120.207245444, p = 2.01012270793e-11, p_adjusted = 1.5595436475e-10, low = -13.6997460009, high = -6.46055802901, furthest = 100, side = 0, alpha = 0.05),
  list(label = "transposed − replaced", groups = c("letter-judge"), weights = c("transposed" = 1, "replaced" = -1), estimate = -1.25, se = 5.77575752607, df = 80, p = 0.829209871595, p_adjusted = 0.999360993122, low = -16.7297211467, high = 14.2297211467, furthest = 100, side = 0, alpha = 0.05),
  list(label = "transposed − replaced", groups = c("human", "letter-judge"), weights = c("transposed" = 1, "replaced" = -1), estimate = -8.83015201497, se = 5.84671584898, df = 82.19428531, p = 0.134808070233, p_adjusted = 0.496844378964, low = -24.4895908725, high = 6.82928684253, furthest = 200, side = 0, alpha = 0.05),
  list(label = "transposed − word", groups = c("human"), weights = c("transposed" = 1, "word" = -1), estimate = 3.95994917445, se = 2.67495412727, df = 96.447342494, p = 0.142031138895, p_adjusted = 0.515006073383, low = -3.17878245853, high = 11.0986808074, furthest = 100, side = 0, alpha = 0.05),
  list(label = "transposed − word", groups = c("letter-judge"), weights = c("transposed" = 1, "word" = -1), estimate = 11.25, se = 7.96942088886, df = 80, p = 0.161931938317, p_adjusted = 0.562129105562, low = -10.1090013956, high = 32.6090013956, furthest = 100, side = 0, alpha = 0.05),
  list(label = "transposed − word", groups = c("human", "letter-judge"), weights = c("transposed" = 1, "word" = -1), estimate = -7.29005082555, se = 7.99874728907, df = 81.744312491, p = 0.364765030806, p_adjusted = 0.863447611131, low = -28.7162118854, high = 14.1361102343, furthest = 200, side = 0, alpha = 0.05),
  list(label = "replaced − word", groups = c("human"), weights = c("replaced" = 1, "word" = -1), estimate = 14.0401011894, se = 1.97092171351, df = 89.709622071, p = 2.53591110804e-10, p_adjusted = 1.94389556516e-09, low = 8.77206257048, high = 19.3081398084, furthest = 100, side = 0, alpha = 0.05),
  list(label = "replaced − word", groups = c("letter-judge"), weights = c("replaced" = 1, "word" = -1), estimate = 12.5, se = 7.62553173079, df = 79, p = 0.105141972939, p_adjusted = 0.415725957128, low = -7.94381125407, high = 32.9438112541, furthest = 100, side = 0, alpha = 0.05),
  list(label = "replaced − word", groups = c("human", "letter-judge"), weights = c("replaced" = 1, "word" = -1), estimate = 1.54010118943, se = 7.48812275556, df = 79.724329401, p = 0.837570990102, p_adjusted = 0.999479182812, low = -18.5306998537, high = 21.6109022325, furthest = 200, side = 0, alpha = 0.05)
)), FALSE)

# Model 1: nonwords
refit(1, "nonwords", {
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_01.csv")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- glmer(
  correct ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.807607542862, -0.358943225016, 0.581320285767, 0.714095402406), fixef = c(4.37866033283, -2.07379649359, -0.969287189415, 0.693293302505)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = FALSE, rows = 9920, loglik = -2566.36194862,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.37866033283, -2.07379649359, -0.969287189415, 0.693293302505),
  se = c(0.196232295029, 0.18646830978, 0.171302854509, 0.19452243273),
  variance = c(0.652229943288, -0.289885255982, 0.466773513429, 0.509932243738)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, 1, 0, 0.5)
  ),
  b = c(-1.72714984234),
  b_se = c(0.137799676413),
  df = c(NA),
  family = "", tests = list(
    list(estimate = -1.72714984234, se = 0.137799676413, df = Inf, p = 4.87854488348e-36, p_adjusted = NA, low = -2.0874401941, high = -1.36685949059, furthest = Inf, side = 0, alpha = 0.05)
  )
)
})

# Model 2: times of nonwords
refit(2, "times of nonwords", {
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
d <- rows_of("models/model_02.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.673124019808, -0.0419712867467, 0.193746064992, 0.178560239402),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
table <- coef(summary(m))
half <- qt(0.975, table[, "df"]) * table[, "Std. Error"]
print(cbind("2.5 %" = table[, "Estimate"] - half, "97.5 %" = table[, "Estimate"] + half), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, flat = FALSE, rows = 8999, loglik = -5290.56097279,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.93631522109, 0.148769202009, 0.494119975009, -0.0613712688864),
  se = c(0.0280990890414, 0.0146359563033, 0.0122972246539, 0.0181393956683),
  variance = c(0.0800813026691, -0.0049933076498, 0.00694582522813, 0.00563521475893, 0.176742483283)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, 1, 0, 0.5)
  ),
  b = c(0.118083567566),
  b_se = c(0.0117776910815),
  df = c(121.998563562),
  family = "measure: rt", tests = list(
    list(estimate = 0.118083567566, se = 0.0117776910815, df = 121.998563562, p = 1.27230103257e-17, p_adjusted = 1.27230103257e-17, low = 0.0947684489824, high = 0.141398686149, furthest = Inf, side = 0, alpha = 0.05)
  )
)
})

# Model 3: judgements
refit(3, "judgements", {
# correct ~ item_type + (1 + item_type | participant) + (1 + item_type | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_03.csv")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("word", "replaced", "transposed"))
m <- glmer(
  correct ~ item_type + (1 + item_type | participant) + (1 + item_type | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.473050365101, -0.318297005263, -0.372763962634, 0.789042349006, 0.457602591511, 0.610769279142, 1.42902172598, -1.47195774684, -1.87721257186, 0.632569509069, 0.15031660123, 0.77512660829), fixef = c(2.15885799883, 1.6034293733, 0.105572675336)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = FALSE, rows = 19840, loglik = -6356.92519354,
  terms = c("(Intercept)", "item_typereplaced", "item_typetransposed"),
  estimate = c(2.15885799883, 1.6034293733, 0.105572675336),
  se = c(0.171890496745, 0.234445242361, 0.251581242142),
  variance = c(0.223776647922, -0.15057051455, -0.176336128621, 0.723900812085, 0.479717476694, 0.72139221594, 2.04210309332, -2.10345959995, -2.68257754947, 2.56680379227, 2.85826328626, 4.14734337944)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, -1, 1),
    "transposed - word (human)" = c(0, 0, 1),
    "replaced - word (human)" = c(0, 1, 0)
  ),
  b = c(-1.49785669796, 0.105572675336, 1.6034293733),
  b_se = c(0.186821904064, 0.251581242142, 0.234445242361),
  df = c(NA, NA, NA),
  family = "", tests = list(
    list(estimate = -1.49785669796, se = 0.186821904064, df = Inf, p = 1.07862296718e-15, p_adjusted = NA, low = -1.98632032344, high = -1.00939307248, furthest = Inf, side = 0, alpha = 0.05),
    list(estimate = 0.105572675336, se = 0.251581242142, df = Inf, p = 0.674751009999, p_adjusted = NA, low = -0.552210394884, high = 0.763355745556, furthest = Inf, side = 0, alpha = 0.05),
    list(estimate = 1.6034293733, se = 0.234445242361, df = Inf, p = 7.96094472077e-12, p_adjusted = NA, low = 0.990450003275, high = 2.21640874332, furthest = Inf, side = 0, alpha = 0.05)
  )
)
})

# Model 4: signal detection by font
refit(4, "signal detection by font", {
# said_signal ~ truth * font + (0 + people + people_truth + people_cursive + people_cursive_truth || participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_04.csv")
numbers <- c("said_signal", "truth", "people", "people_truth", "people_cursive", "people_cursive_truth")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- glmer(
  said_signal ~ truth * font + (0 + people + people_truth + people_cursive + people_cursive_truth || participant) + (1 | item),
  data = d,
  family = binomial(link = "probit"),
  nAGQ = 1,
  start = list(theta = c(0.155838331293, 0.551595300687, 0.225448354612, 0.234194235899, 0.616511624323), fixef = c(0.493240645021, 4.41305036057, -1.01776970715, -2.34479139484)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = FALSE, rows = 19840, loglik = -5535.66371913,
  terms = c("(Intercept)", "truth", "fontcursive", "truth:fontcursive"),
  estimate = c(0.493240645021, 4.41305036057, -1.01776970715, -2.34479139484),
  se = c(0.0767161641197, 0.0854102893303, 0.0419642376289, 0.0768349408869),
  variance = c(0.0242855855003, 0.30425737574, 0.0508269605972, 0.0548469401283, 0.380086582926)
)
})

# Model 5: accuracy where letters are changed, human: spatial coding by length
refit(5, "accuracy where letters are changed, human: spatial coding by length", {
# value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_05.csv")
numbers <- c("value", "cov_letters", "cov_match_spatial_length")
d[numbers] <- lapply(d[numbers], as.numeric)
m <- glmer(
  value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.55343145487, 0.609843955906), fixef = c(2.99776633204, 0.117097690706, -0.865211952733)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = FALSE, rows = 3976, loglik = -978.477804324,
  terms = c("(Intercept)", "cov_letters", "cov_match_spatial_length"),
  estimate = c(2.99776633204, 0.117097690706, -0.865211952733),
  se = c(0.140838520269, 0.115699747404, 0.0836554813997),
  variance = c(0.306286375239, 0.371909650556)
)
})

# Model 6: accuracy where letters are changed, human: length and frequency alone
refit(6, "accuracy where letters are changed, human: length and frequency alone", {
# value ~ cov_letters + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_06.csv")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)
m <- glmer(
  value ~ cov_letters + (1 | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.523195731588, 0.545830064891), fixef = c(2.74869926493, -0.337723827758)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = FALSE, rows = 3976, loglik = -1044.0805088,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(2.74869926493, -0.337723827758),
  se = c(0.125010287603, 0.101812378947),
  variance = c(0.273733773552, 0.297930459739)
)
})

# Model 7: accuracy where letters are changed, letter-judge: distance of the letters
refit(7, "accuracy where letters are changed, letter-judge: distance of the letters", {
# value ~ cov_letters + distance + (1 | item)
# ML, Laplace (nAGQ=1)
# glmer's steps are for columns of ordinary size; here some are very small or large, so the criterion is written out over lme4's matrices.
d <- rows_of("models/model_07.csv")
numbers <- c("value", "cov_letters", "distance")
d[numbers] <- lapply(d[numbers], as.numeric)
family <- binomial(link = "logit")
has_dispersion <- FALSE
positive <- TRUE
information <- "expected"
points <- 1
loglik <- function(y, mu, w, d) dbinom(round(w * y), round(w), mu, log = TRUE)
variance <- function(mu, d) mu * (1 - mu)
parts <- glFormula(value ~ cov_letters + distance + (1 | item), data = d, family = family,
  control = glmerControl(check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore"))
names <- c("(Intercept)", "cov_letters", "distance")
start <- c(7.27016222293, 6.33966805405, 0.461150873529, 3.9782815913)
unit <- c(0.727016222293, 16322928.1863, 14334544.4811, 204674674.538)
basis <- list(matrix(c(1), 1))
penalty <- function(par) 0
criterion()
narrowed()
print(log_likelihood, digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = TRUE, rows = 318, loglik = -124.364028442,
  terms = c("(Intercept)", "cov_letters", "distance"),
  estimate = c(6.33966805405, 0.461150873529, 3.9782815913),
  se = c(915344.360011, 0.740427601443, 11523833.698),
  variance = c(52.8552587477)
)
}, note = "glmer's steps are for columns of ordinary size; here some are very small or large, so the criterion is written out over lme4's matrices", no_maximum = "(Intercept) and distance grow without end")

# Model 8: accuracy where letters are changed, letter-judge: length and frequency alone
refit(8, "accuracy where letters are changed, letter-judge: length and frequency alone", {
# value ~ cov_letters + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_08.csv")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)
m <- glmer(
  value ~ cov_letters + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(6.78423205421), fixef = c(6.29211307161, 0.415397347764)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, flat = TRUE, rows = 318, loglik = -129.505471081,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(6.29211307161, 0.415397347764),
  se = c(1.54196813205, 0.732060402813),
  variance = c(46.0258045653)
)
})

# Model 9: response time where letters are changed, human: spatial coding by length
refit(9, "response time where letters are changed, human: spatial coding by length", {
# value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item)
d <- rows_of("models/model_09.csv")
numbers <- c("value", "cov_letters", "cov_match_spatial_length")
d[numbers] <- lapply(d[numbers], as.numeric)
m <- lmer(
  value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item),
  data = d,
  REML = FALSE,
  start = c(0.0724116266668, 0.0867097724814),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
table <- coef(summary(m))
half <- qt(0.975, table[, "df"]) * table[, "Std. Error"]
print(cbind("2.5 %" = table[, "Estimate"] - half, "97.5 %" = table[, "Estimate"] + half), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, flat = FALSE, rows = 3976, loglik = -3191.35717986,
  terms = c("(Intercept)", "cov_letters", "cov_match_spatial_length"),
  estimate = c(0.0796379776115, 0.0193781982254, 0.0406481014218),
  se = c(0.0116144670004, 0.0121966142989, 0.00959930595839),
  variance = c(0.00151267568202, 0.00216902876344, 0.288488973152)
)
})

# Model 10: response time where letters are changed, human: length and frequency alone
refit(10, "response time where letters are changed, human: length and frequency alone", {
# value ~ cov_letters + (1 | participant) + (1 | item)
d <- rows_of("models/model_10.csv")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)
m <- lmer(
  value ~ cov_letters + (1 | participant) + (1 | item),
  data = d,
  REML = FALSE,
  start = c(0.07598217354, 0.082318247497),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
table <- coef(summary(m))
half <- qt(0.975, table[, "df"]) * table[, "Std. Error"]
print(cbind("2.5 %" = table[, "Estimate"] - half, "97.5 %" = table[, "Estimate"] + half), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, flat = FALSE, rows = 3976, loglik = -3200.27618196,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(0.0796134984686, 0.0404671542262),
  se = c(0.0115382586224, 0.0112741251546),
  variance = c(0.00167311642977, 0.00196378966619, 0.289802907546)
)
})

adjust_family("measure: correct", 10, c())
adjust_family("measure: rt", 1, c())
say(sprintf("%d of %d comparisons agree with the report.\n", sum(agreed), length(agreed)))
quit(status = if (all(agreed)) 0 else 1)
