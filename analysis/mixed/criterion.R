# The Laplace approximation with lme4's matrices. lme4's own deviance function leaves the dispersion out of |u|^2, and
# holds the expected information; here both are as the likelihood has them.
random <- parts$reTrms
X <- parts$X
y <- model.response(parts$fr)
w <- model.weights(parts$fr)
if (is.matrix(y)) { w <- rowSums(y); y <- ifelse(w > 0, y[, 1] / w, 0) }
if (is.factor(y)) y <- as.integer(y) - 1
if (is.null(w)) w <- rep(1, length(y))
known <- model.offset(parts$fr)
if (is.null(known)) known <- rep(0, length(y))
n_theta <- length(random$theta)
mode <- rep(0, nrow(random$Zt))

score <- function(eta, d) {
  mu <- family$linkinv(eta)
  w * (y - mu) * family$mu.eta(eta) / variance(mu, d)
}
expected <- function(eta, d) w * family$mu.eta(eta)^2 / variance(family$linkinv(eta), d)
observed <- function(eta, d) {
  h <- 1e-5 * pmax(1e-3, abs(eta))
  -(score(eta + h, d) - score(eta - h, d)) / (2 * h)
}
deviance_at <- function(par) {
  Lambdat <- random$Lambdat
  Lambdat@x <- par[seq_len(n_theta)][random$Lind]
  d <- if (has_dispersion) exp(par[n_theta + 1]) else 1
  A <- Lambdat %*% random$Zt
  fixed <- drop(X %*% par[-seq_len(n_theta + has_dispersion)]) + known
  H_of <- function(info) forceSymmetric(A %*% Diagonal(x = info) %*% t(A) + Diagonal(nrow(A)))
  value <- function(u, eta) {
    mu <- family$linkinv(eta)
    if (any(!is.finite(mu)) || any(mu <= 0)) return(-Inf)
    2 * sum(loglik(y, mu, w, d)) - sum(u^2)
  }
  u <- mode
  eta <- fixed + drop(crossprod(A, u))
  now <- value(u, eta)
  if (!is.finite(now)) { u <- 0 * u; eta <- fixed; now <- value(u, eta) }
  if (!is.finite(now)) return(1e10)
  for (i in 1:200) {
    g <- drop(A %*% score(eta, d)) - u
    step <- tryCatch(drop(as.matrix(solve(Cholesky(H_of(observed(eta, d)), LDL = FALSE), g))),
      error = function(e) drop(as.matrix(solve(H_of(expected(eta, d)), g))), warning = function(e)
      drop(as.matrix(solve(H_of(expected(eta, d)), g))))
    size <- 1
    repeat {
      eta_new <- fixed + drop(crossprod(A, u + size * step))
      new <- value(u + size * step, eta_new)
      if (new >= now - 1e-10 * abs(now) || size < 1e-10) break
      size <- size / 2
    }
    u <- u + size * step; eta <- eta_new; now <- new
    if (sum(g * step) < 1e-16) break
  }
  mode <<- u
  info <- if (information == "observed") observed(eta, d) else expected(eta, d)
  as.numeric(determinant(H_of(info), logarithm = TRUE)$modulus) - now
}
