# Reference fits of the families beyond lme4's best: run in this folder with Rscript families.R
# Writes families.csv (simulated here) and families.json. lme4 at tight control, glmmTMB at its own.
suppressMessages({ library(lme4); library(glmmTMB); library(jsonlite) })
set.seed(20261122)
d <- expand.grid(participant = 1:20, item = 1:12)
n <- nrow(d)
d$x <- round(rnorm(n), 3)
d$cond <- c("intact", "scrambled")[(d$participant + d$item) %% 2 + 1]
eta <- 0.4 * d$x + 0.3 * (d$cond == "intact") + rnorm(20, 0, 0.5)[d$participant] + rnorm(12, 0, 0.4)[d$item]
d$count <- rnbinom(n, size = 2, mu = exp(1 + eta))
d$correct <- rbinom(n, 1, 0.5 + 0.5 * plogis(0.5 + eta))
d$yes <- rbinom(n, 1, 1 - exp(-exp(eta - 0.5)))
mu <- 600 + 80 * eta
d$rt <- round(rgamma(n, shape = 12, scale = mu / 12), 1)
z <- rnorm(n)^2
lambda <- 8000
first <- mu + mu^2 * z / (2 * lambda) - mu / (2 * lambda) * sqrt(4 * mu * lambda * z + mu^2 * z^2)
d$time <- round(ifelse(runif(n) <= mu / (mu + first), first, mu^2 / first), 1)
write.csv(d, "families.csv", row.names = FALSE, quote = FALSE)

tight <- glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12)
guess <- structure(list(
  linkfun = function(mu) qlogis(pmax((mu - 0.5) / 0.5, 1e-3)), linkinv = function(eta) 0.5 + 0.5 * plogis(eta),
  mu.eta = function(eta) 0.5 * dlogis(eta), valideta = function(eta) TRUE, name = "guess(0.5)"), class = "link-glm")
mine <- function(m, ...) list(estimate = unname(fixef(m)), se = unname(sqrt(diag(as.matrix(vcov(m))))),
  loglik = as.numeric(logLik(m)), variance = unname(sapply(VarCorr(m), function(v) v[1, 1])), ...)
# lme4 differentiates its deviance in steps of 1e-4, which rounding may swamp (here for the inverse Gaussian under the log
# link: standard errors 2.7 times too large); these steps are a tenth of a standard error.
wide <- function(m) {
  deviance <- update(m, devFunOnly = TRUE)
  at <- unlist(getME(m, c("theta", "fixef")))
  k <- length(at); p <- length(fixef(m))
  step <- c(rep(0.02, k - p), 0.1 * sqrt(diag(as.matrix(vcov(m, use.hessian = FALSE)))))
  one <- function(i) replace(numeric(k), i, step[i])
  H <- outer(1:k, 1:k, Vectorize(function(i, j) (deviance(at + one(i) + one(j)) - deviance(at + one(i) - one(j)) -
    deviance(at - one(i) + one(j)) + deviance(at - one(i) - one(j))) / (4 * step[i] * step[j])))
  unname(sqrt(diag(2 * solve(H))[-seq_len(k - p)]))
}
theirs <- function(m, ...) list(estimate = unname(fixef(m)$cond), se = unname(sqrt(diag(vcov(m)$cond))),
  loglik = as.numeric(logLik(m)), variance = unname(sapply(VarCorr(m)$cond, function(v) v[1, 1])), ...)
two <- "x + cond + (1 | participant) + (1 | item)"
f <- function(y, right = two) as.formula(paste(y, "~", right))
fits <- list()
add <- function(judge, y, right, family, link, options, found)
  fits[[length(fits) + 1]] <<- c(list(judge = judge, formula = paste(y, "~", right), family = family, link = link,
    options = options), found)
none <- structure(list(), names = character(0))
# In seconds, where lme4's criterion is well scaled.
d$rt.s <- d$rt / 1000; d$time.s <- d$time / 1000
for (link in c("identity", "log")) {
  m <- glmmTMB(f("rt.s"), d, family = Gamma(link = link), start = list(beta = c(if (link == "log") -0.5 else 0.6, 0, 0)))
  add("glmmTMB", "I(rt/1000)", two, "Gamma", link, none, theirs(m, dispersion = sigma(m)^2))
}
for (link in c("identity", "log")) {
  m <- glmer(f("rt.s"), d, family = Gamma(link = link), control = tight)
  add("lme4", "I(rt/1000)", two, "Gamma", link, list(dispersion = "glmer"), replace(mine(m, sigma = sigma(m)), "se", list(wide(m))))
  m <- glmer(f("time.s"), d, family = inverse.gaussian(link = link), control = tight)
  add("lme4", "I(time/1000)", two, "inverse.gaussian", link, list(dispersion = "glmer"), replace(mine(m, sigma = sigma(m)), "se", list(wide(m))))
}
m <- glmer.nb(f("count"), data = d, control = tight)
add("lme4", "count", two, "negative.binomial", "log", none, mine(m, dispersion = getME(m, "glmer.nb.theta")))
m <- glmmTMB(f("count"), d, family = nbinom2)
add("glmmTMB", "count", two, "negative.binomial", "log", list(information = "observed"), theirs(m, dispersion = sigma(m)))
m <- glmmTMB(f("yes"), d, family = binomial("probit"))
add("glmmTMB", "yes", two, "binomial", "probit", list(information = "observed"), theirs(m))
m <- glmer(f("yes"), d, family = binomial("cloglog"), control = tight)
add("lme4", "yes", two, "binomial", "cloglog", none, mine(m))
m <- glmmTMB(f("yes"), d, family = binomial("cloglog"))
add("glmmTMB", "yes", two, "binomial", "cloglog", list(information = "observed"), theirs(m))
m <- glmer(f("correct"), d, family = binomial(guess), control = tight)
add("lme4", "correct", two, "binomial", "guess(0.5)", none, mine(m))
one <- "x + cond + (1 | participant)"
for (k in c(5, 25)) {
  m <- glmer(f("yes", one), d, family = binomial, nAGQ = k, control = tight)
  add("lme4", "yes", one, "binomial", "logit", list(nagq = k), mine(m))
}
m <- glmer(f("yes", one), d, family = binomial("probit"), nAGQ = 9, control = tight)
add("lme4", "yes", one, "binomial", "probit", list(nagq = 9), mine(m))
versions <- sapply(c("lme4", "glmmTMB"), function(p) as.character(packageVersion(p)))
write_json(list(made_by = "families.R", versions = as.list(c(R = R.version.string, versions)), fits = fits),
  "families.json", digits = 12, auto_unbox = TRUE, pretty = 1)
