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
