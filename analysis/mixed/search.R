# From our estimates, in steps of our standard errors.
objective <- function(z) deviance_at(start + z * unit) + penalty(start + z * unit)
found <- minqa::bobyqa(0 * start, objective, control = list(rhobeg = 0.1, rhoend = 1e-7, maxfun = 1e5))
z <- found$par
k <- length(z)
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
par <- start + z * unit
last <- utils::tail(seq_len(k), length(names))
fixed <- data.frame(Estimate = par[last], "Std. Error" = unit[last] * sqrt(diag(vcov)[last]),
  row.names = names, check.names = FALSE)
log_likelihood <- -deviance_at(par) / 2
print(fixed, digits = 6)
cat("factors of the random covariances, column by column:", format(par[seq_len(n_theta)], digits = 8), "\n")
