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
