# Fits of simulated data sets by lme4 at its defaults; one JSON line a set with estimates and standard errors. Arguments: FILE FORMULA FAMILY OUT.
a <- commandArgs(TRUE)
suppressMessages(library(lme4))
everything <- read.csv(a[1])
f <- as.formula(a[2])
for (number in unique(everything$number)) {
  d <- everything[everything$number == number, ]
  t <- system.time(m <- suppressWarnings(suppressMessages(
    if (a[3] == "binomial") glmer(f, d, binomial) else lmer(f, d)
  )))
  s <- coef(summary(m))
  cat(sprintf(
    '{"number": %d, "loglik": %.8f, "singular": %s, "seconds": %.2f, "fixed": {%s}}\n', number, as.numeric(logLik(m)),
    if (isSingular(m)) "true" else "false", t[[1]] + t[[2]],
    paste(sprintf('"%s": [%.12g, %.12g]', rownames(s), s[, 1], s[, 2]), collapse = ", ")
  ), file = a[4], append = TRUE)
}
