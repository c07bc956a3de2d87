# Refits every model of the report with lme4, each on its own rows in models/, and holds each against the report.
#   Rscript models.R          one line a model: agrees, or differs by how much; ends with status 1 where any differs
#   Rscript models.R 3 7      the same of models 3 and 7
#   Rscript models.R print    prints the models as well
# Run it in the report's folder. Model numbers are those of numbers.json, which names the tables and paragraphs that show each.
# What lme4 does not compute (times in milliseconds by maximum likelihood, penalties …) is written out over lme4's matrices.
if (!l10n_info()[["UTF-8"]]) invisible(suppressWarnings(Sys.setlocale("LC_CTYPE", "C.UTF-8")))
library(lme4)
library(Matrix)
library(splines)
given <- commandArgs(trailingOnly = TRUE)
asked <- suppressWarnings(as.integer(setdiff(given, "print")))
if (anyNA(asked)) stop("after models.R stand numbers of models, or print; not: ", paste(given, collapse = " "))
say <- cat
# Summaries that nobody asked for are not computed.
if (!"print" %in% given) print <- cat <- function(...) invisible()

rows_of <- function(file) read.csv(file, colClasses = "character", check.names = FALSE,
  na.strings = c("NA", "", "NaN"), fileEncoding = "UTF-8-BOM")

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
by_wider_steps <- function(found, report) {
  deviance_of <- update(m, devFunOnly = TRUE)
  begun <- eval(getCall(m)$start)
  places <- list(c(getME(m, "theta"), found$estimate), c(begun$theta, begun$fixef))
  at <- places[[which.min(sapply(places, deviance_of))]]
  n <- length(getME(m, "theta"))
  theta <- at[seq_len(n)]
  unit <- c(rep(0.1 * max(theta, 0.2), n), report$se)
  free <- c(theta > 1e-4 | getME(m, "lower")[seq_len(n)] < 0, rep(TRUE, length(report$se)))
  beside <- function(z) deviance_of(replace(at, free, at[free] + z * unit[free]))
  H <- numDeriv::hessian(beside, 0 * at[free], method.args = list(eps = 0.1, r = 2))
  at[free] <- at[free] - unit[free] * solve(H, numDeriv::grad(beside, 0 * at[free], method.args = list(eps = 0.1, r = 2)))
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
    "standard errors" = c(most(report$se / se - 1), if (linear) 1e-4 else if (report$singular) 5e-3 else 1e-3),
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
  if (!all(held$apart <= held$allowed) && is_here("m") && isGLMM(m)) {
    wider <- tryCatch(apart(by_wider_steps(found, report), report), error = function(e) held)
    if (all(wider$apart <= wider$allowed)) {
      note <- c(note, sprintf("glmer's own standard errors are rough, off by %.2g; these are of its deviance by wider steps", held$apart[2]))
      held <- wider
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

# Model 1: Nonwords
refit(1, "Nonwords", {
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
  linear = FALSE, singular = FALSE, rows = 9920, loglik = -2566.36194862,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.37866033283, -2.07379649359, -0.969287189415, 0.693293302505),
  se = c(0.196232295029, 0.186468309781, 0.171302854509, 0.19452243273),
  variance = c(0.652229943288, -0.289885255982, 0.466773513429, 0.509932243738)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, 1, 0, 0.5)
  ),
  b = c(-1.72714984234),
  b_se = c(0.137799676414),
  df = c(NA)
)
})

# Model 2: Times of nonwords
refit(2, "Times of nonwords", {
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
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 8999, loglik = -5290.56097279,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.93631522109, 0.148769202009, 0.494119975009, -0.0613712688864),
  se = c(0.0280990890415, 0.0146359563033, 0.0122972246539, 0.0181393956683),
  variance = c(0.0800813026691, -0.0049933076498, 0.00694582522813, 0.00563521475893, 0.176742483283)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, 1, 0, 0.5)
  ),
  b = c(0.118083567566),
  b_se = c(0.0117776910815),
  df = c(121.998563562)
)
})

# Model 3: Judgements
refit(3, "Judgements", {
# correct ~ reader_group * item_type + (0 + people + people_replaced + people_transposed | participant) + (1 | item) + (0 + people_word + people_replaced + people_transposed || item_condition)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_03.csv")
numbers <- c("correct", "people", "people_replaced", "people_transposed", "people_word")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["reader_group"]] <- factor(d[["reader_group"]], levels = c("human", "letter-judge"))
d[["item_type"]] <- factor(d[["item_type"]], levels = c("word", "replaced", "transposed"))
m <- glmer(
  correct ~ reader_group * item_type + (0 + people + people_replaced + people_transposed | participant) + (1 | item) + (0 + people_word + people_replaced + people_transposed || item_condition),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.902643715834, 0.631219293571, 1.43914007221, 0.473013999441, -0.315958649493, -0.370426918947, 0.790385215742, 0.459162217786, 0.609979235023, 3.40972821651e-09), fixef = c(2.16074222813, -1.48628718269, 1.6018551029, 0.0946826465836, -0.966388769257, 0.467624932115)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = TRUE, rows = 20080, loglik = -6500.71909525,
  terms = c("(Intercept)", "reader_groupletter-judge", "item_typereplaced", "item_typetransposed", "reader_groupletter-judge:item_typereplaced", "reader_groupletter-judge:item_typetransposed"),
  estimate = c(2.16074222813, -1.48628718269, 1.6018551029, 0.0946826465836, -0.966388769257, 0.467624932115),
  se = c(0.173243399003, 0.293118127975, 0.232068141924, 0.21866145278, 0.429484725508, 0.418810673888),
  variance = c(0.814765677735, 0.398437796577, 2.07112414744, 0.223742243668, -0.149452864455, -0.175217118432, 0.724538657453, 0.479954617611, 0.720120711682, 1.16262465104e-17)
  # The differences that the report tests: weights of the fixed effects, in their order above.
  , weights = rbind(
    "transposed - replaced (human)" = c(0, 0, -1, 1, 0, 0),
    "transposed - replaced (letter-judge)" = c(0, 0, -1, 1, -1, 1),
    "transposed - replaced (human vs. letter-judge)" = c(0, 0, 0, 0, 1, -1),
    "transposed - word (human)" = c(0, 0, 0, 1, 0, 0),
    "transposed - word (letter-judge)" = c(0, 0, 0, 1, 0, 1),
    "transposed - word (human vs. letter-judge)" = c(0, 0, 0, 0, 0, -1),
    "replaced - word (human)" = c(0, 0, 1, 0, 0, 0),
    "replaced - word (letter-judge)" = c(0, 0, 1, 0, 1, 0),
    "replaced - word (human vs. letter-judge)" = c(0, 0, 0, 0, -1, 0)
  ),
  b = c(-1.50717245631, -0.0731587549409, -1.43401370137, 0.0946826465836, 0.562307578698, -0.467624932115, 1.6018551029, 0.635466333639, 0.966388769257),
  b_se = c(0.193712656345, 0.382597873565, 0.428842309014, 0.21866145278, 0.357196793545, 0.418810673888, 0.232068141924, 0.361388304629, 0.429484725508),
  df = c(NA, NA, NA, NA, NA, NA, NA, NA, NA)
)
})

# Model 4: times of nonwords, log scale
refit(4, "times of nonwords, log scale", {
# log_rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item)
d <- rows_of("models/model_04.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
m <- lmer(
  log_rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item),
  data = d,
  REML = TRUE,
  start = c(0.588028710969, -0.0498002347631, 0.227630484531, 0.121278767814, 0.0132056282452, 0.163048435692),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 8999, loglik = -6450.69253474,
  terms = c("(Intercept)", "item_typetransposed"),
  estimate = c(7.17631686853, 0.116579765371),
  se = c(0.02702507063, 0.0168764077189),
  variance = c(0.079211372911, -0.00670842238362, 0.0124381537663, 0.00336945786365, 0.000366888687419, 0.00613003981147, 0.229081742513)
)
})

# Model 5: times of nonwords, milliseconds (Gamma, identity link)
refit(5, "times of nonwords, milliseconds (Gamma, identity link)", {
# rt ~ item_type + (1 + item_type | participant) + (1 + item_type | item)
# ML, Laplace (nAGQ=1, observed information)
# glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices.
# Also: glmer has the expected information only.
# Also: glmer's steps are for columns of ordinary size; here some are very small or large.
d <- rows_of("models/model_05.csv")
numbers <- c("rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
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
unit <- c(0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.0433186629877, 0.1, 4610.22178986, 1400.60470508)
basis <- list(matrix(c(1188.79443606, 0, -1127.11494663, 2380.96417952), 2), matrix(c(1188.79443606, 0, -1127.11494663, 2380.96417952), 2))
penalty <- function(par) 0
criterion()
narrowed()
cat("phi", exp(par[n_theta + 1]), "\n")
print(log_likelihood, digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 8999, loglik = -72075.9400562,
  terms = c("(Intercept)", "item_typetransposed"),
  estimate = c(1568.9118785, 170.936989214),
  se = c(49.0195230898, 29.5709007036),
  variance = c(267280.801867, -12049.5754788, 41595.6656948, 8574.48374811, -920.368284395, 16025.9945469)
  , dispersion = 0.238260453768
)
}, note = "glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices; glmer has the expected information only; glmer's steps are for columns of ordinary size; here some are very small or large")

# Model 6: response time by font, log scale
refit(6, "response time by font, log scale", {
# log_rt ~ font + (1 + font | participant) + (1 + font | item)
d <- rows_of("models/model_06.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ font + (1 + font | participant) + (1 + font | item),
  data = d,
  REML = TRUE,
  start = c(0.478741659098, 0.0771765481915, 0.472435008969, 0.121849425234, -0.00755226559215, 0.199663903745),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 19840, loglik = -13859.6541147,
  terms = c("(Intercept)", "fontcursive"),
  estimate = c(6.92753751217, 0.460824486727),
  se = c(0.0219277625542, 0.0239519007379),
  variance = c(0.0516504349853, 0.00832641615577, 0.0516408530504, 0.00334594279961, -0.000207382584122, 0.00899687256744, 0.225357254124)
)
})

# Model 7: response time by font, milliseconds (Gamma, identity link)
refit(7, "response time by font, milliseconds (Gamma, identity link)", {
# rt ~ font + (1 + font | participant) + (1 + font | item)
# ML, Laplace (nAGQ=1, observed information)
# glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices.
# Also: glmer has the expected information only.
# Also: glmer's steps are for columns of ordinary size; here some are very small or large.
d <- rows_of("models/model_07.csv")
numbers <- c("rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
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
start <- c(0.124535601359, 0.00223112910249, 0.0857370668864, 0.0209974233182, 0.0110080330977, 0.011418385401, -1.34782592523, 1248.27507382, 764.142905945)
unit <- c(0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.1, 7970.27072772, 5553.05976688)
basis <- list(matrix(c(4918.90928613, 0, -4913.95320499, 9837.82357084), 2), matrix(c(4918.90928613, 0, -4913.95320499, 9837.82357084), 2))
penalty <- function(par) 0
criterion()
narrowed()
cat("phi", exp(par[n_theta + 1]), "\n")
print(log_likelihood, digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 19840, loglik = -158276.591948,
  terms = c("(Intercept)", "fontcursive"),
  estimate = c(1248.27507382, 764.142905945),
  se = c(66.8696615175, 78.8481903346),
  variance = c(539441.7805, -342153.840727, 711916.903677, 5568.06590066, -975.692266964, 24346.317909)
  , dispersion = 0.259804481463
)
}, note = "glmer does not estimate phi by maximum likelihood, so the criterion is written out over lme4's matrices; glmer has the expected information only; glmer's steps are for columns of ordinary size; here some are very small or large")

# Model 8: accuracy where letters are changed, human: spatial coding by length
refit(8, "accuracy where letters are changed, human: spatial coding by length", {
# value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_08.csv")
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
  linear = FALSE, singular = FALSE, rows = 3976, loglik = -978.477804324,
  terms = c("(Intercept)", "cov_letters", "cov_match_spatial_length"),
  estimate = c(2.99776633204, 0.117097690706, -0.865211952733),
  se = c(0.140838520269, 0.115699747404, 0.0836554813997),
  variance = c(0.306286375239, 0.371909650556)
)
})

# Model 9: accuracy where letters are changed, human: length and frequency alone
refit(9, "accuracy where letters are changed, human: length and frequency alone", {
# value ~ cov_letters + (1 | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_09.csv")
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
  linear = FALSE, singular = FALSE, rows = 3976, loglik = -1044.0805088,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(2.74869926493, -0.337723827758),
  se = c(0.125010287603, 0.101812378947),
  variance = c(0.273733773552, 0.297930459739)
)
})

# Model 10: accuracy where letters are changed, letter-judge: distance of the letters
refit(10, "accuracy where letters are changed, letter-judge: distance of the letters", {
# value ~ cov_letters + distance + (1 | item)
# ML, Laplace (nAGQ=1)
# glmer's steps are for columns of ordinary size; here some are very small or large, so the criterion is written out over lme4's matrices.
d <- rows_of("models/model_10.csv")
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
start <- c(7.27016222293, 6.33966805405, 0.461150873529, 3.97828159125)
unit <- c(0.727016222293, 16322928.1863, 14334544.4811, 204674674.538)
basis <- list(matrix(c(1), 1))
penalty <- function(par) 0
criterion()
narrowed()
print(log_likelihood, digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 318, loglik = -124.364028442,
  terms = c("(Intercept)", "cov_letters", "distance"),
  estimate = c(6.33966805405, 0.461150873529, 3.97828159125),
  se = c(915344.36001, 0.740427601439, 11523833.698),
  variance = c(52.8552587477)
)
}, note = "glmer's steps are for columns of ordinary size; here some are very small or large, so the criterion is written out over lme4's matrices", no_maximum = "(Intercept), distance grows without end")

# Model 11: accuracy where letters are changed, letter-judge: length and frequency alone
refit(11, "accuracy where letters are changed, letter-judge: length and frequency alone", {
# value ~ cov_letters + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_11.csv")
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
  linear = FALSE, singular = FALSE, rows = 318, loglik = -129.505471081,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(6.29211307161, 0.415397347764),
  se = c(1.54196813244, 0.732060402802),
  variance = c(46.0258045653)
)
})

# Model 12: response time where letters are changed, human: spatial coding by length
refit(12, "response time where letters are changed, human: spatial coding by length", {
# value ~ cov_letters + cov_match_spatial_length + (1 | participant) + (1 | item)
d <- rows_of("models/model_12.csv")
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
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 3976, loglik = -3191.35717986,
  terms = c("(Intercept)", "cov_letters", "cov_match_spatial_length"),
  estimate = c(0.0796379776115, 0.0193781982254, 0.0406481014218),
  se = c(0.0116144670004, 0.0121966142989, 0.00959930595839),
  variance = c(0.00151267568202, 0.00216902876344, 0.288488973152)
)
})

# Model 13: response time where letters are changed, human: length and frequency alone
refit(13, "response time where letters are changed, human: length and frequency alone", {
# value ~ cov_letters + (1 | participant) + (1 | item)
d <- rows_of("models/model_13.csv")
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
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 3976, loglik = -3200.27618196,
  terms = c("(Intercept)", "cov_letters"),
  estimate = c(0.0796134984686, 0.0404671542262),
  se = c(0.0115382586224, 0.0112741251546),
  variance = c(0.00167311642977, 0.00196378966619, 0.289802907546)
)
})

# Model 14: judgements: label probabilities
refit(14, "judgements: label probabilities", {
# lead ~ item_type + (1 | item)
d <- rows_of("models/model_14.csv")
numbers <- c("lead")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("word", "replaced", "transposed"))
m <- lmer(
  lead ~ item_type + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.205017331964),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 240, loglik = -454.724063065,
  terms = c("(Intercept)", "item_typereplaced", "item_typetransposed"),
  estimate = c(0.612042766235, 0.62236572504, 0.192676422242),
  se = c(0.179381154751, 0.248516726436, 0.248578201923),
  variance = c(0.103837062762, 2.47042253273)
)
})

# Model 15: signal detection by font
refit(15, "signal detection by font", {
# said_signal ~ truth * font + (0 + people + people_truth + people_cursive + people_cursive_truth || participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_15.csv")
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
  linear = FALSE, singular = FALSE, rows = 19840, loglik = -5535.66371913,
  terms = c("(Intercept)", "truth", "fontcursive", "truth:fontcursive"),
  estimate = c(0.493240645021, 4.41305036057, -1.01776970715, -2.34479139484),
  se = c(0.0767161641192, 0.0854102893316, 0.0419642376287, 0.0768349408878),
  variance = c(0.0242855855003, 0.30425737574, 0.0508269605972, 0.0548469401283, 0.380086582926)
)
})

# Model 16: nonwords, without items 1 of 4
refit(16, "nonwords, without items 1 of 4", {
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_16.csv")
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
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 7316, loglik = -1888.91813095,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.47174282362, -2.10902933032, -1.02277161929, 0.598707797211),
  se = c(0.232740970914, 0.223100776613, 0.208437523361, 0.234694452074),
  variance = c(0.532106900294, -0.198042643482, 0.470502121833, 0.576558751915)
)
})

# Model 17: nonwords, without items 2 of 4
refit(17, "nonwords, without items 2 of 4", {
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_17.csv")
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
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 7440, loglik = -1869.36383304,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.39934873358, -2.02105141126, -0.863859082141, 0.583946168502),
  se = c(0.228448441555, 0.21801295667, 0.196559006476, 0.222952109577),
  variance = c(0.836623988878, -0.366495529917, 0.455610378968, 0.448974643724)
)
})

# Model 18: nonwords, without items 3 of 4
refit(18, "nonwords, without items 3 of 4", {
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_18.csv")
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
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 7440, loglik = -1963.74162211,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.32156694316, -2.15372053914, -0.949119419734, 0.852656496361),
  se = c(0.220512619252, 0.211189451005, 0.199026833978, 0.226694580845),
  variance = c(0.615081557178, -0.305820749758, 0.456981896535, 0.481291855349)
)
})

# Model 19: nonwords, without items 4 of 4
refit(19, "nonwords, without items 4 of 4", {
# correct ~ item_type * font + (1 + item_type | participant) + (1 | item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_19.csv")
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
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 7564, loglik = -2005.47319109,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(4.38561880596, -2.08655018859, -1.06603930121, 0.783252214195),
  se = c(0.224222744726, 0.212206992543, 0.191061535633, 0.217909229694),
  variance = c(0.74017032949, -0.371504507511, 0.509668956674, 0.519097118779)
)
})

# Model 20: times of nonwords, without items 1 of 4
refit(20, "times of nonwords, without items 1 of 4", {
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
d <- rows_of("models/model_20.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.677876097082, -0.0487114528898, 0.224003324712, 0.184357517819),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 6620, loglik = -3887.87033504,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.93328346126, 0.145963448113, 0.489165358499, -0.0733848568368),
  se = c(0.0290191276008, 0.0169216348075, 0.0142069888028, 0.0210794236355),
  variance = c(0.0798867322739, -0.00574057532406, 0.00913585452994, 0.00590875143315, 0.173849728308)
)
})

# Model 21: times of nonwords, without items 2 of 4
refit(21, "times of nonwords, without items 2 of 4", {
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
d <- rows_of("models/model_21.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.678158582097, -0.0379471053876, 0.128792477845, 0.180687643163),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 6783, loglik = -4063.1823911,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.94513117219, 0.14390504643, 0.48564325241, -0.0526529436203),
  se = c(0.0293574355609, 0.01545484875, 0.0142415628174, 0.0207797895493),
  variance = c(0.0824257259247, -0.0046122216704, 0.00323098843182, 0.00585136463647, 0.179225688093)
)
})

# Model 22: times of nonwords, without items 3 of 4
refit(22, "times of nonwords, without items 3 of 4", {
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
d <- rows_of("models/model_22.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.664922920602, -0.0399555698415, 0.22285000187, 0.162451857148),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 6744, loglik = -4023.63088051,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.93252020816, 0.155539975049, 0.505676658263, -0.0749198022312),
  se = c(0.028485948068, 0.0170689690927, 0.0145738548075, 0.0214190374054),
  variance = c(0.0785469379585, -0.00471992702944, 0.00910653467282, 0.00468852259016, 0.177658770306)
)
})

# Model 23: times of nonwords, without items 4 of 4
refit(23, "times of nonwords, without items 4 of 4", {
# log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item)
d <- rows_of("models/model_23.csv")
numbers <- c("log_rt")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed"))
d[["font"]] <- factor(d[["font"]], levels = c("print", "cursive"))
m <- lmer(
  log_rt ~ item_type * font + (1 + item_type | participant) + (1 | item),
  data = d,
  REML = TRUE,
  start = c(0.673571204683, -0.0446863121201, 0.191854563118, 0.184841818883),
  control = lmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), check.nobs.vs.rankZ = "ignore", check.nobs.vs.nRE = "ignore", check.scaleX = "ignore")
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = TRUE, singular = FALSE, rows = 6850, loglik = -4053.11937662,
  terms = c("(Intercept)", "item_typetransposed", "fontcursive", "item_typetransposed:fontcursive"),
  estimate = c(6.93360075409, 0.150125568668, 0.497914801737, -0.0494881662683),
  se = c(0.0289597409496, 0.0161224085827, 0.0139924413282, 0.0207326660031),
  variance = c(0.0798593509151, -0.00529805884796, 0.00683041175203, 0.00601394175187, 0.176018676263)
)
})

# Model 24: right answers of letter-judge by source
refit(24, "right answers of letter-judge by source", {
# right ~ item_type + (1 | source_item)
# ML, Laplace (nAGQ=1)
d <- rows_of("models/model_24.csv")
numbers <- c("right")
d[numbers] <- lapply(d[numbers], as.numeric)
d[["item_type"]] <- factor(d[["item_type"]], levels = c("replaced", "transposed", "word"))
m <- glmer(
  right ~ item_type + (1 | source_item),
  data = d,
  family = binomial(link = "logit"),
  nAGQ = 1,
  start = list(theta = c(0.974170941836), fixef = c(1.56916533967, -0.080445780596, -0.744069973669)),
  control = glmerControl(optimizer = "bobyqa", optCtrl = list(rhobeg = 2e-3, rhoend = 1e-9, maxfun = 1e6), tolPwrss = 1e-13, nAGQ0initStep = FALSE)
)
print(summary(m), digits = 6)
print(confint(m, parm = "beta_", method = "Wald"), digits = 6)
print(logLik(m), digits = 10)
report <- list(
  linear = FALSE, singular = FALSE, rows = 480, loglik = -262.494933315,
  terms = c("(Intercept)", "item_typetransposed", "item_typeword"),
  estimate = c(1.56916533967, -0.080445780596, -0.744069973669),
  se = c(0.252254988059, 0.290101384044, 0.278556944737),
  variance = c(0.949009023918)
)
})

say(sprintf("%d of %d compared models agree with the report.\n", sum(agreed), length(agreed)))
quit(status = if (all(agreed)) 0 else 1)
