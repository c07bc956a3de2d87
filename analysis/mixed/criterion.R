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
