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
