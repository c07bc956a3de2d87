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
