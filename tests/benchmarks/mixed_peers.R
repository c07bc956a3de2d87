# One fit by lme4 or glmmTMB at their defaults; prints seconds and log-likelihood as JSON. Arguments: ENGINE FILE FORMULA FAMILY FITS.
a <- commandArgs(TRUE)
suppressMessages(library(a[1], character.only = TRUE))
d <- read.csv(a[2])
for (name in intersect(c("participant", "item", "s", "d", "dept", "studage", "lectage", "service"), names(d)))
  d[[name]] <- factor(d[[name]])
f <- as.formula(a[3])
run <- function() suppressWarnings(suppressMessages(
  if (a[1] == "lme4") {
    if (a[4] == "binomial") glmer(f, d, binomial) else lmer(f, d)
  } else if (a[4] == "binomial") glmmTMB(f, d, binomial) else glmmTMB(f, d, REML = TRUE)
))
best <- Inf
for (i in seq_len(as.integer(a[5]))) {
  t <- system.time(m <- run())
  best <- min(best, t[[1]] + t[[2]])
}
note <- if (a[1] == "lme4") {
  paste(c(if (isSingular(m)) "singular", if (length(m@optinfo$conv$lme4$messages) && !isSingular(m)) "warns of convergence"), collapse = "")
} else if (m$fit$convergence != 0 || !isTRUE(m$sdr$pdHess)) "warns of convergence" else ""
loglik <- as.numeric(logLik(m))
cat(sprintf('{"seconds": %.4f, "loglik": %s, "note": "%s", "mb": null}\n', best, if (is.na(loglik)) "NaN" else sprintf("%.6f", loglik), note))
