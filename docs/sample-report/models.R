# Refits every model of the report with lme4, each on its own rows in models/. Run it in the report's folder: Rscript models.R
# Where glmer maximises something else (times in milliseconds, among others) the criterion is written out over lme4's matrices.
# Model numbers are those of numbers.json, which names the tables and paragraphs that show each.

# Model 1: Nonwords
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_01.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
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
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
# The differences that the report tests: weights of the fixed effects, in their order above.
weights <- rbind(
  "transposed - replaced (human)" = c(0, 1, 0, 0.5)
)
differences <- data.frame(
  b = as.vector(weights %*% fixef(m)),
  se = sqrt(diag(weights %*% as.matrix(vcov(m)) %*% t(weights))),
  b_report = c(-1.72714984234),
  se_report = c(0.137799676413),
  row.names = rownames(weights)
)
print(differences, digits = 6)

# Model 2: Times of nonwords
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_02.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.673124020067, -0.041971289142, 0.193746065917, 0.178560245208),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
# The differences that the report tests: weights of the fixed effects, in their order above.
weights <- rbind(
  "transposed - replaced (human)" = c(0, 1, 0, 0.5)
)
differences <- data.frame(
  b = as.vector(weights %*% fixef(m)),
  se = sqrt(diag(weights %*% as.matrix(vcov(m)) %*% t(weights))),
  b_report = c(0.118083567612),
  se_report = c(0.0117776911132),
  row.names = rownames(weights)
)
differences$df <- lmerTest::contest(m, weights, joint = FALSE)$df
differences$df_report <- c(121.998563062)
print(differences, digits = 6)

# Model 3: Judgements
# correct ~ reader_group * item_type + (0 + people + people_replaced + people_transposed | participant) + (1 | item) + (1 + model | item_condition)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_03.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("correct", "people", "people_replaced", "people_transposed", "model")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["reader_group"]] <- factor(d[["reader_group"]], levels = c("human", "letter-judge"))
d[["item_type"]] <- factor(d[["item_type"]], levels = c("word", "replaced", "transposed"))

m <- glmer(
  correct ~ reader_group * item_type + (0 + people + people_replaced + people_transposed | participant) + (1 | item) + (1 + model | item_condition),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(1.09478110327, -0.866489798147, 53.5038867343, 0.4672851729, -0.306486670346, -0.36280728568, 0.816981091947, 0.462188329534, 0.621746981121, 9.82634636443e-09), fixef = c(2.10346678813, 9.90962673519, 1.85491169262, 0.189270489628, -1.13984486747, 0.443102865362)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
# The differences that the report tests: weights of the fixed effects, in their order above.
weights <- rbind(
  "transposed - replaced (human)" = c(0, 0, -1, 1, 0, 0),
  "transposed - replaced (letter-judge)" = c(0, 0, -1, 1, -1, 1),
  "transposed - replaced (human vs. letter-judge)" = c(0, 0, 0, 0, 1, -1),
  "transposed - word (human)" = c(0, 0, 0, 1, 0, 0),
  "transposed - word (letter-judge)" = c(0, 0, 0, 1, 0, 1),
  "transposed - word (human vs. letter-judge)" = c(0, 0, 0, 0, 0, -1),
  "replaced - word (human)" = c(0, 0, 1, 0, 0, 0),
  "replaced - word (letter-judge)" = c(0, 0, 1, 0, 1, 0),
  "replaced - word (human vs. letter-judge)" = c(0, 0, 0, 0, -1, 0)
)
differences <- data.frame(
  b = as.vector(weights %*% fixef(m)),
  se = sqrt(diag(weights %*% as.matrix(vcov(m)) %*% t(weights))),
  b_report = c(-1.66564120299, -0.0826934701629, -1.58294773283, 0.189270489628, 0.63237335499, -0.443102865362, 1.85491169262, 0.715066825153, 1.13984486747),
  se_report = c(0.227806485884, 2.0081337197, 2.01779056874, 0.202421906059, 1.822289002, 1.83002291755, 0.22838872505, 1.85126601307, 1.86184125289),
  row.names = rownames(weights)
)
print(differences, digits = 6)

# Model 4: signal detection by font
# said_signal ~ truth * font * reader_group + (0 + people + people_truth + people_cursive + people_cursive_truth || participant) + (1 | item) + (1 | item_reader)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_04.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("said_signal", "truth", "people", "people_truth", "people_cursive", "people_cursive_truth")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
d[["reader_group"]] <- factor(d[["reader_group"]], levels = c("human", "letter-judge"))

m <- glmer(
  said_signal ~ truth * font * reader_group + (0 + people + people_truth + people_cursive + people_cursive_truth || participant) + (1 | item) + (1 | item_reader),
  data = d,
  family = binomial(link = "probit"),
  nAGQ = 1,
  start = list(theta = c(0.658030098192, 0.238327949616, 0.226651712687, 0.554287057033, 0.156943659379, 0.357827783548), fixef = c(-0.496684832962, 4.43165110984, 1.02337871955, 0.737209617771, -2.35537342257, -2.78425330683, -1.02337871955, 2.35537342257)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 5: times of nonwords, log scale
# log_rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_05.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))

m <- lmer(
  log_rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item),
  data = d,
  REML = TRUE,
  start = c(0.588028716237, -0.0498002486467, 0.227630515924, 0.121278785295, 0.0132055801228, 0.163048469545),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 6: times of nonwords, milliseconds (Gamma, identity link)
# rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item)
# ML, Laplace (nAGQ=1, observed information)
# glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices.
# Also: glmer has the expected information only.
# Also: glmer's steps are for columns of ordinary size; here some are very small or large.
library(lme4)
library(Matrix)

d <- read.csv("models/model_06.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))

# The results are fixed, vcov and log_likelihood; an m of a program before this one is of another model.
rm(list = intersect("m", ls()))
family <- Gamma(link = "identity")
has_dispersion <- TRUE
positive <- TRUE
information <- "observed"
points <- 1
loglik <- function(y, mu, w, d) dgamma(y, shape = w / d, scale = mu * d / w, log = TRUE)
variance <- function(mu, d) d * mu^2
parts <- glFormula(rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item), data = d, family = family,
  control = glmerControl(check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore"))
names <- c("(Intercept)", "item_typetransposed")
start <- c(0.433186629877, 0.00623201456611, 0.0854316376018, 0.0893975361619, 0.0263443468736, 0.0461836855222, -1.43439086011, 1568.9118785, 170.936989214)
unit <- c(0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.1, 4610.22178984, 1400.60470508)
basis <- list(matrix(c(1188.79443606, 0, -1127.11494663, 2380.96417952), 2), matrix(c(1188.79443606, 0, -1127.11494663, 2380.96417952), 2))
penalty <- function(par) 0

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
widths <- sapply(basis, nrow)
sizes <- widths * (widths + 1) / 2
n_theta <- sum(sizes)
mode <- rep(0, nrow(random$Zt))

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
  # lme4's triangle of each term, and the rotation Q from our spherical effects to lme4's.
  turned <- lapply(seq_along(basis), function(t) qr(t(basis[[t]] %*% template(par, t)), tol = 0))
  Lambdat <- random$Lambdat
  Lambdat@x <- unlist(lapply(turned, function(q) { L <- t(qr.R(q)); L[lower.tri(L, diag = TRUE)] }))[random$Lind]
  d <- if (has_dispersion) exp(par[n_theta + 1]) else 1
  A <- Lambdat %*% random$Zt
  fixed <- drop(X %*% par[-seq_len(n_theta + has_dispersion)]) + known
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
      if (new >= now - 1e-10 * abs(now) || size < 1e-10) break
      size <- size / 2
    }
    u <- u + size * step; eta <- eta_new; now <- new
    if (sum(g * step) < 1e-16) break
  }
  mode <<- u
  H <- H_of(if (information == "observed") observed(eta, d) else expected(eta, d))
  if (points == 1) return(as.numeric(determinant(H, logarithm = TRUE)$modulus) - now)
  integral(u, H, A, fixed, d, as.matrix(bdiag(lapply(turned, qr.Q))))
}

# From our estimates, in steps of their standard errors; coefficients along directions that X tells apart.
k <- length(start)
shape <- if (length(names)) solve(qr.R(qr(X))) else matrix(0, 0, 0)
others <- seq_len(k - length(names))
par_at <- function(z) start + c(z[others] * unit[others], drop(shape %*% (z[-others] * unit[-others])))
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
spread <- shape %*% diag(unit[-others], length(names))
vcov <- spread %*% vcov[-others, -others, drop = FALSE] %*% t(spread)
fixed <- data.frame(Estimate = par[-others], "Std. Error" = sqrt(diag(vcov)), row.names = names, check.names = FALSE)
log_likelihood <- -deviance_at(par) / 2
print(fixed, digits = 6)
for (t in seq_along(basis)) {
  covariance <- tcrossprod(basis[[t]] %*% template(par, t))
  dimnames(covariance) <- list(random$cnms[[t]], random$cnms[[t]])
  cat("covariance by", names(random$cnms)[t], "\n")
  print(covariance, digits = 6)
}
cat("phi", exp(par[n_theta + 1]), "\n")
print(log_likelihood, digits = 10)

# Model 7: response time by font, log scale
# log_rt ~ font + (1 + font | participant) + (1 + font | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_07.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ font + (1 + font | participant) + (1 + font | item),
  data = d,
  REML = TRUE,
  start = c(0.478741687343, 0.0771765839095, 0.472434983148, 0.121849429144, -0.00755224801051, 0.199663890046),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 8: response time by font, milliseconds (Gamma, identity link)
# rt ~ font + (1 + font | participant) + (1 + font | item)
# ML, Laplace (nAGQ=1, observed information)
# glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices.
# Also: glmer has the expected information only.
# Also: glmer's steps are for columns of ordinary size; here some are very small or large.
library(lme4)
library(Matrix)

d <- read.csv("models/model_08.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

# The results are fixed, vcov and log_likelihood; an m of a program before this one is of another model.
rm(list = intersect("m", ls()))
family <- Gamma(link = "identity")
has_dispersion <- TRUE
positive <- TRUE
information <- "observed"
points <- 1
loglik <- function(y, mu, w, d) dgamma(y, shape = w / d, scale = mu * d / w, log = TRUE)
variance <- function(mu, d) d * mu^2
parts <- glFormula(rt ~ font + (1 + font | participant) + (1 + font | item), data = d, family = family,
  control = glmerControl(check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore"))
names <- c("(Intercept)", "fontcursive")
start <- c(0.124535601799, 0.00223112879538, 0.0857370670991, 0.0209974233216, 0.0110080330233, 0.0114183854221, -1.34782592539, 1248.27507602, 764.142903774)
unit <- c(0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.1, 7970.27075469, 5553.05977896)
basis <- list(matrix(c(4918.90928613, 0, -4913.95320499, 9837.82357084), 2), matrix(c(4918.90928613, 0, -4913.95320499, 9837.82357084), 2))
penalty <- function(par) 0

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
widths <- sapply(basis, nrow)
sizes <- widths * (widths + 1) / 2
n_theta <- sum(sizes)
mode <- rep(0, nrow(random$Zt))

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
  # lme4's triangle of each term, and the rotation Q from our spherical effects to lme4's.
  turned <- lapply(seq_along(basis), function(t) qr(t(basis[[t]] %*% template(par, t)), tol = 0))
  Lambdat <- random$Lambdat
  Lambdat@x <- unlist(lapply(turned, function(q) { L <- t(qr.R(q)); L[lower.tri(L, diag = TRUE)] }))[random$Lind]
  d <- if (has_dispersion) exp(par[n_theta + 1]) else 1
  A <- Lambdat %*% random$Zt
  fixed <- drop(X %*% par[-seq_len(n_theta + has_dispersion)]) + known
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
      if (new >= now - 1e-10 * abs(now) || size < 1e-10) break
      size <- size / 2
    }
    u <- u + size * step; eta <- eta_new; now <- new
    if (sum(g * step) < 1e-16) break
  }
  mode <<- u
  H <- H_of(if (information == "observed") observed(eta, d) else expected(eta, d))
  if (points == 1) return(as.numeric(determinant(H, logarithm = TRUE)$modulus) - now)
  integral(u, H, A, fixed, d, as.matrix(bdiag(lapply(turned, qr.Q))))
}

# From our estimates, in steps of their standard errors; coefficients along directions that X tells apart.
k <- length(start)
shape <- if (length(names)) solve(qr.R(qr(X))) else matrix(0, 0, 0)
others <- seq_len(k - length(names))
par_at <- function(z) start + c(z[others] * unit[others], drop(shape %*% (z[-others] * unit[-others])))
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
spread <- shape %*% diag(unit[-others], length(names))
vcov <- spread %*% vcov[-others, -others, drop = FALSE] %*% t(spread)
fixed <- data.frame(Estimate = par[-others], "Std. Error" = sqrt(diag(vcov)), row.names = names, check.names = FALSE)
log_likelihood <- -deviance_at(par) / 2
print(fixed, digits = 6)
for (t in seq_along(basis)) {
  covariance <- tcrossprod(basis[[t]] %*% template(par, t))
  dimnames(covariance) <- list(random$cnms[[t]], random$cnms[[t]])
  cat("covariance by", names(random$cnms)[t], "\n")
  print(covariance, digits = 6)
}
cat("phi", exp(par[n_theta + 1]), "\n")
print(log_likelihood, digits = 10)

# Model 9: accuracy where letters are changed, human: kind of change
# value ~ cov_letters + kind_substitution + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_09.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters", "kind_substitution")
d[numbers] <- lapply(d[numbers], as.numeric)

m <- glmer(
  value ~ cov_letters + kind_substitution + (1 | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.675682700275, 0.64848374431), fixef = c(3.11011199539, -0.357148542415, 0.843861264842)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 10: accuracy where letters are changed, human: length and frequency alone
# value ~ cov_letters + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_10.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)

m <- glmer(
  value ~ cov_letters + (1 | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.642294748255, 0.607080287566), fixef = c(2.82775206004, -0.341763618886)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 11: accuracy where letters are changed, letter-judge: distance of the letters
# value ~ cov_letters + distance + (1 | item)
# ML, Laplace (nAGQ=1)
# glmer's steps are for columns of ordinary size; here some are very small or large, so the criterion is written out over lme4's matrices.
library(lme4)
library(Matrix)

d <- read.csv("models/model_11.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters", "distance")
d[numbers] <- lapply(d[numbers], as.numeric)

# The results are fixed, vcov and log_likelihood; an m of a program before this one is of another model.
rm(list = intersect("m", ls()))
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
start <- c(7.27016222293, 6.33966805405, 0.461150873529, 3.97828159125)
unit <- c(0.727016222293, 16322928.1863, 14334544.4811, 204674674.538)
basis <- list(matrix(c(1), 1))
penalty <- function(par) 0

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
widths <- sapply(basis, nrow)
sizes <- widths * (widths + 1) / 2
n_theta <- sum(sizes)
mode <- rep(0, nrow(random$Zt))

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
  # lme4's triangle of each term, and the rotation Q from our spherical effects to lme4's.
  turned <- lapply(seq_along(basis), function(t) qr(t(basis[[t]] %*% template(par, t)), tol = 0))
  Lambdat <- random$Lambdat
  Lambdat@x <- unlist(lapply(turned, function(q) { L <- t(qr.R(q)); L[lower.tri(L, diag = TRUE)] }))[random$Lind]
  d <- if (has_dispersion) exp(par[n_theta + 1]) else 1
  A <- Lambdat %*% random$Zt
  fixed <- drop(X %*% par[-seq_len(n_theta + has_dispersion)]) + known
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
      if (new >= now - 1e-10 * abs(now) || size < 1e-10) break
      size <- size / 2
    }
    u <- u + size * step; eta <- eta_new; now <- new
    if (sum(g * step) < 1e-16) break
  }
  mode <<- u
  H <- H_of(if (information == "observed") observed(eta, d) else expected(eta, d))
  if (points == 1) return(as.numeric(determinant(H, logarithm = TRUE)$modulus) - now)
  integral(u, H, A, fixed, d, as.matrix(bdiag(lapply(turned, qr.Q))))
}

# From our estimates, in steps of their standard errors; coefficients along directions that X tells apart.
k <- length(start)
shape <- if (length(names)) solve(qr.R(qr(X))) else matrix(0, 0, 0)
others <- seq_len(k - length(names))
par_at <- function(z) start + c(z[others] * unit[others], drop(shape %*% (z[-others] * unit[-others])))
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
spread <- shape %*% diag(unit[-others], length(names))
vcov <- spread %*% vcov[-others, -others, drop = FALSE] %*% t(spread)
fixed <- data.frame(Estimate = par[-others], "Std. Error" = sqrt(diag(vcov)), row.names = names, check.names = FALSE)
log_likelihood <- -deviance_at(par) / 2
print(fixed, digits = 6)
for (t in seq_along(basis)) {
  covariance <- tcrossprod(basis[[t]] %*% template(par, t))
  dimnames(covariance) <- list(random$cnms[[t]], random$cnms[[t]])
  cat("covariance by", names(random$cnms)[t], "\n")
  print(covariance, digits = 6)
}
print(log_likelihood, digits = 10)

# Model 12: accuracy where letters are changed, letter-judge: length and frequency alone
# value ~ cov_letters + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_12.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)

m <- glmer(
  value ~ cov_letters + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(6.78423205421), fixef = c(6.29211307161, 0.415397347764)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 13: response time where letters are changed, human: spatial coding, by length
# value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_13.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters", "cov_match_spatial_length")
d[numbers] <- lapply(d[numbers], as.numeric)

m <- lmer(
  value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item),
  data = d,
  REML = FALSE,
  start = c(0.0690145334163, 0.105294403765),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 14: response time where letters are changed, human: length and frequency alone
# value ~ cov_letters + (1 | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_14.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("value", "cov_letters")
d[numbers] <- lapply(d[numbers], as.numeric)

m <- lmer(
  value ~ cov_letters + (1 | participant) + (1 | item),
  data = d,
  REML = FALSE,
  start = c(0.0707435964274, 0.101478207555),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 15: nonwords, without items 1 of 4
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_15.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- glmer(
  correct ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.729456578758, -0.271493395562, 0.629915437181, 0.759314659357), fixef = c(4.47174282362, -2.10902933032, -1.02277161929, 0.598707797211)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 16: nonwords, without items 2 of 4
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_16.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- glmer(
  correct ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.914671519661, -0.400685406771, 0.543195714056, 0.670055701956), fixef = c(4.39934873358, -2.02105141126, -0.863859082141, 0.583946168502)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 17: nonwords, without items 3 of 4
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_17.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- glmer(
  correct ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.784271354302, -0.38994252191, 0.55220170784, 0.693752012861), fixef = c(4.32156694316, -2.15372053914, -0.949119419734, 0.852656496361)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 18: nonwords, without items 4 of 4
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_18.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("correct")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- glmer(
  correct ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.860331523013, -0.431815524101, 0.568510606602, 0.720483947621), fixef = c(4.38561880596, -2.08655018859, -1.06603930121, 0.783252214195)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 19: times of nonwords, without items 1 of 4
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_19.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.677876095683, -0.0487114526002, 0.224003328014, 0.184357520382),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 20: times of nonwords, without items 2 of 4
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_20.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.678158586233, -0.0379471160882, 0.128792499832, 0.18068764201),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 21: times of nonwords, without items 3 of 4
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_21.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.664922922413, -0.0399555717093, 0.22285000437, 0.162451858826),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 22: times of nonwords, without items 4 of 4
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
library(lme4)
library(lmerTest)  # Satterthwaite degrees of freedom

d <- read.csv("models/model_22.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))

m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.673571204723, -0.0446863125646, 0.191854562899, 0.184841818261),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)

# Model 23: right answers of letter-judge by source
# right ~ item_type + (1 | source_item)
# ML, Laplace (nAGQ=1)
library(lme4)

d <- read.csv("models/model_23.csv", colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")
numbers <- c("right")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed", "word"))

m <- glmer(
  right ~ item_type + (1 | source_item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.974170941836), fixef = c(1.56916533967, -0.080445780596, -0.744069973669)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-12, nAGQ0initStep = FALSE)
)

print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
