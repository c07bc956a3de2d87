
# Recomputes the planned and exploratory differences in shares (or ratings) in base R, each from its rows in models/, and compares them with
# the report. The estimate is a weighted sum of condition means in which every item counts alike; its variance adds what
# participants and what items contribute and subtracts what both contain. Of a model, the mean answer to an item in a condition is
# subtracted from people's answers. Simultaneous p values and intervals are simulated (200,000 draws of correlated t).
shares_of <- function(file) {
  d <- read.csv(file, colClasses = "character", check.names = FALSE, na.strings = "", fileEncoding = "UTF-8-BOM")
  d$value <- as.numeric(d$value)
  d$person <- d$person == "TRUE"
  d
}

# A model's answers, averaged over repetitions and then over prompt variants: items in rows, conditions in columns.
model_means <- function(d, conditions, items) {
  by_variant <- aggregate(value ~ item + condition + variant, d, mean)
  cells <- aggregate(value ~ item + condition, by_variant, mean)
  m <- matrix(NA_real_, length(items), length(conditions), dimnames = list(items, conditions))
  m[cbind(cells$item, cells$condition)] <- cells$value
  m
}

# Connected groups of participants and items: the label of each.
blocks_of <- function(a, b) {
  label <- seq_along(unique(a))
  names(label) <- unique(a)
  repeat {
    of_b <- tapply(label[a], b, min)
    now <- tapply(of_b[b], a, min)[names(label)]
    if (all(now == label)) break
    label <- setNames(as.vector(now), names(label))
  }
  list(a = label, b = tapply(label[a], b, min))
}

# What participants, items and answers add to the error of each condition's mean, people's answers less the model's.
sums_of_people <- function(d, conditions, span, m = NULL) {
  d <- aggregate(value ~ participant + item + condition, d, mean)
  lapply(setNames(conditions, conditions), function(name) {
    own <- d[d$condition == name, ]
    if (!is.null(m)) own <- own[!is.na(m[own$item, name]), ]
    if (!nrow(own)) return(NULL)
    y <- own$value
    p <- own$participant
    i <- own$item
    z <- if (is.null(m)) y else y - m[i, name]
    n_p <- table(p)[p]
    n_i <- table(i)[i]
    each <- as.vector(1 / (length(unique(i)) * n_i))
    apart <- function(unit, n) {
      r <- (z - ave(z, unit)) * sqrt(n / pmax(n - 1, 1))
      as.vector(ifelse(n == 1, z - mean(z), r))
    }
    left <- z - mean(z)
    for (step in 1:2000) {
      before <- left
      left <- left - ave(left, p)
      left <- left - ave(left, i)
      if (max(abs(left - before)) < 1e-12) break
    }
    blocks <- blocks_of(p, i)
    df <- length(z) - length(unique(p)) - length(unique(i)) + length(unique(blocks$a))
    rare <- min(sum(y != span[1]), sum(y != span[2])) < 3
    q <- min(0.5, 3 / length(y))
    list(mean = sum(each * z), participants = tapply(each * apart(i, n_i), p, sum), items = tapply(each * apart(p, n_p), i, sum),
      answers = setNames(if (df > 0) each * left * sqrt(length(z) / df) else 0 * z, paste(p, i, sep = "\r")),
      blocks = blocks, least = if (rare) q * (1 - q) / length(y) * diff(span)^2 else 0)
  })
}

sums_of_model <- function(m) {
  lapply(setNames(colnames(m), colnames(m)), function(name) {
    v <- m[!is.na(m[, name]), name]
    n <- length(v)
    if (!n) return(NULL)
    items <- (v - mean(v)) * if (n > 1) sqrt(n / (n - 1)) / n else 1
    list(mean = mean(v), participants = numeric(), items = items, answers = numeric(),
      blocks = list(a = integer(), b = setNames(rep(1, n), names(v))), least = 0)
  })
}

weighed <- function(sums, part, w, sign = 1) {
  parts <- unlist(lapply(names(w), function(name) sign * w[[name]] * sums[[name]][[part]]), use.names = FALSE)
  if (!length(parts)) return(numeric())
  unit <- unlist(lapply(names(w), function(name) names(sums[[name]][[part]])))
  found <- tapply(parts, unit, sum)
  setNames(as.vector(found), names(found))
}

# Sum of squares of what units add, with its degrees of freedom; units of other conditions have a variance of their own.
over_units <- function(u, sums, side, w) {
  if (!length(u)) return(c(0, 1))
  seen <- lapply(names(w), function(name) sums[[name]]$blocks[[side]])
  pairs <- do.call(rbind, lapply(seq_along(seen), function(k)
    data.frame(unit = names(seen[[k]]), stratum = paste(k, seen[[k]]), condition = k)))
  component <- blocks_of(pairs$unit, pairs$stratum)$a[names(u)]
  shown <- tapply(pairs$condition, component[pairs$unit], function(k) paste(sort(unique(k)), collapse = " "))
  group <- shown[as.character(component)]
  total <- below <- freedoms <- 0
  for (g in unique(group)) {
    own <- names(u)[group == g]
    within <- sapply(seen, function(b) length(unique(b[intersect(own, names(b))])))
    df <- max(length(own) - max(length(unique(component[own])), within), 1)
    square <- sum(u[own]^2)
    total <- total + square
    below <- below + square^2 / df
    freedoms <- freedoms + df
  }
  c(total, if (below > 0) total^2 / below else freedoms)
}

# What one more item that differs adds to the variance of a model that answers hardly any items differently.
one_more <- function(m, w) {
  v <- m[, names(w), drop = FALSE]
  whole <- rowSums(is.na(v)) == 0
  added <- 0
  n <- sum(whole)
  if (length(w) > 1 && n > 1) {
    each <- round(drop(v[whole, , drop = FALSE] %*% w), 9)
    most <- max(table(each))
    if (sum(each != 0) < 5 || (n - most < 5 && most > n / 2)) added <- added + max(abs(w))^2 / (n * (n - 1))
  }
  if (length(w) == 1 || n < 2) for (name in names(w)) {
    own <- v[!is.na(v[, name]), name]
    n <- length(own)
    if (n > 1 && n - max(table(own)) < 3) added <- added + w[[name]]^2 / (n * (n - 1))
  }
  added
}

estimated <- function(d, groups, w, fixed_items, span) {
  unit <- if (is.null(span)) 100 else 1
  if (is.null(span)) span <- c(0, 1)
  w <- w[w != 0]
  conditions <- sort(unique(d$condition))
  items <- unique(d$item)
  own <- lapply(groups, function(g) d[d$group == g, ])
  person <- sapply(own, function(o) any(o$person))
  means <- lapply(own, model_means, conditions, items)
  sign <- 1
  m <- NULL
  if (!any(person)) {
    m <- if (length(groups) > 1) means[[1]] - means[[2]] else means[[1]]
    sums <- sums_of_model(m)
  } else if (all(person) && length(groups) > 1) {
    stop("two groups of people are not compared here")
  } else {
    if (length(groups) > 1) m <- means[[which(!person)]]
    sums <- sums_of_people(own[[which(person)]], conditions, span, m)
    if (length(groups) > 1 && person[2]) sign <- -1
  }
  u <- lapply(c(participants = "participants", items = "items", answers = "answers"), function(part) weighed(sums, part, w, sign))
  of_p <- over_units(u$participants, sums, "a", w)
  of_i <- over_units(u$items, sums, "b", w)
  both <- sum(u$answers^2)
  least <- sum(w^2 * sapply(names(w), function(name) sums[[name]]$least))
  value <- sign * sum(w * sapply(names(w), function(name) sums[[name]]$mean))
  v_i <- of_i[1] + if (is.null(m)) 0 else one_more(m, w) * diff(span)^2
  if (fixed_items) {
    variance <- max(of_p[1], least)
    df <- of_p[2]
  } else if (!any(person)) {
    variance <- v_i
    df <- of_i[2]
  } else if (length(u$participants) == 1) {
    variance <- max(v_i, least)
    df <- of_i[2]
  } else {
    variance <- max(of_p[1] + v_i - both, of_p[1], v_i, least)
    below <- of_p[1]^2 / of_p[2] + v_i^2 / of_i[2]
    df <- if (below > 0) variance^2 / below else min(of_p[2], of_i[2])
    df <- min(max(df, min(of_p[2], of_i[2])), of_p[2] + of_i[2])
  }
  c(list(estimate = unit * value, se = unit * sqrt(variance), df = df), u)
}

# The tests of a family: of shares what their estimates share, of a mixed model a block of covariances.
families <- list()
into_family <- function(family, tests) if (nzchar(family)) families[[family]] <<- c(families[[family]], tests)

estimate_shares <- function(number, title, file, family, report, fixed_items = FALSE, span = NULL) {
  if (!wants_estimates) return(invisible())
  d <- shares_of(file)
  found <- lapply(report$tests, function(one) estimated(d, one$groups, one$weights, fixed_items, span))
  into_family(family, Map(function(one, test) c(one[c("participants", "items", "answers")],
    list(t = t_of(one$estimate, one$se), df = one$df, se = one$se, estimate = one$estimate, test = test, of = title)), found, report$tests))
  value <- function(name, list) sapply(list, `[[`, name)
  own <- lapply(c(estimate = "estimate", se = "se", df = "df"), value, found)
  of_report <- lapply(c(estimate = "estimate", se = "se", df = "df", p = "p", side = "side"), value, report$tests)
  apart <- function(name, unit) max(ifelse(own[[name]] == of_report[[name]], 0, abs(own[[name]] - of_report[[name]]) / own[[unit]]))
  off <- c(
    "estimates, in standard errors" = apart("estimate", "se"),
    "standard errors" = apart("se", "se"),
    "degrees of freedom" = apart("df", "df"),
    "p" = max(abs(of_report$p - mapply(p_of, t_of(own$estimate, own$se), own$df, of_report$side))))
  told(sprintf("estimates %d", number), off, 1e-6, title)
}

# A difference without a standard error is known exactly.
t_of <- function(estimate, se) ifelse(se > 0, estimate / se, ifelse(estimate == 0, 0, sign(estimate) * Inf))

p_of <- function(t, df, side) if (side) pt(side * t, df, lower.tail = FALSE) else 2 * pt(abs(t), df, lower.tail = FALSE)

told <- function(what, off, allowed, title) {
  beyond <- !(off <= allowed)
  agreed[what] <<- !any(beyond)
  shown <- if (any(beyond)) off[beyond] else off[which.max(off)]
  said <- paste0(sprintf("%.2g", shown), " (", names(shown), ")", collapse = ", ")
  say(sprintf("%s: %s %s. %s\n", what, if (any(beyond)) "DIFFERS by" else "agrees; largest difference", said, title))
}

# Bayes factors and posteriors: the integral of a t likelihood (estimate, standard error, df) over the plan's prior.
check_bayes <- function(family, tests) {
  if (!length(tests)) return(invisible())
  each <- sapply(tests, function(one) {
    own <- one$test
    weigh <- function(x) dt((x - one$estimate) / one$se, one$df) / dt(0, one$df) * dt(x / own$prior_scale, own$prior_df) / own$prior_scale
    steps <- c(one$se, own$prior_scale) %o% 2^(-3:23)
    ends <- sort(unique(c(0, one$estimate, one$estimate + steps[1, ], one$estimate - steps[1, ], steps[2, ], -steps[2, ])))
    if (own$side) ends <- ends[own$side * ends >= 0]
    mass <- function(low, high) {
      at <- c(low, ends[ends > low & ends < high], high)
      sum(mapply(function(a, b) integrate(weigh, a, b, rel.tol = 1e-10, stop.on.error = FALSE)$value, head(at, -1), tail(at, -1)))
    }
    all <- mass(ends[1], ends[length(ends)])
    share <- function(x) mass(ends[1], x) / all
    factor <- all * (if (own$side) 2 else 1) * dt(0, one$df) / dt(one$estimate / one$se, one$df)
    within <- if (is.na(own$bound)) NA else {
      inside <- share(own$bound) - share(-own$bound)
      before <- 1 - 2 * pt(-own$bound / own$prior_scale, own$prior_df)
      inside / (1 - inside) / (before / (1 - before))
    }
    c("Bayes factor" = own$factor / factor - 1, "Bayes factor of the bound" = if (is.na(within)) 0 else own$within / within - 1,
      "posterior" = max(abs(sapply(own[c("posterior_low", "median", "posterior_high")], share) - c(0.025, 0.5, 0.975))))
  })
  told(paste("Bayes factors,", family), apply(abs(each), 1, max), if (is.null(tests[[1]]$block)) 1e-5 else 0.02, sprintf("(%d tests)", length(tests)))
}

# Adjusted p values and intervals by the largest of correlated |t|, from 200,000 draws. Each t counts as the t with the same tail at
# the largest degrees of freedom of the family; no p exceeds Bonferroni's. `untested` are the sides of tests that are not estimable.
adjust_family <- function(family, tested, untested) {
  tests <- families[[family]]
  if (!wants_estimates) return(invisible())
  check_bayes(family, Filter(function(one) !is.null(one$test$factor), tests))
  if (length(tests) < tested) return(invisible())
  r <- length(tests)
  all_tests <- r + length(untested)
  cov <- diag(r)
  across <- function(part, j, k) {
    a <- tests[[j]][[part]]
    b <- tests[[k]][[part]]
    both <- intersect(names(a), names(b))
    sum(a[both] * b[both])
  }
  for (j in seq_len(r)) for (k in seq_len(r)) {
    a <- tests[[j]]
    b <- tests[[k]]
    if (is.null(a$block) && is.null(b$block)) {
      cov[j, k] <- across("participants", j, k) + across("items", j, k) - across("answers", j, k)
    } else if (!is.null(a$block) && identical(a$block, b$block)) cov[j, k] <- a$block[a$place, b$place]
  }
  none <- diag(cov) <= 0
  cov[none, ] <- cov[, none] <- 0
  diag(cov)[none] <- 1
  R <- cov2cor(cov)
  e <- eigen(R, symmetric = TRUE)
  R <- cov2cor(e$vectors %*% (pmax(e$values, 0) * t(e$vectors)))
  R <- rbind(cbind(R, matrix(0, r, all_tests - r)), cbind(matrix(0, all_tests - r, r), diag(all_tests - r)))
  own_df <- sapply(tests, `[[`, "df")
  df <- max(own_df)
  t_value <- sapply(tests, `[[`, "t")
  side <- sapply(tests, function(one) one$test$side)
  alpha <- sapply(tests, function(one) one$test$alpha)
  sides <- c(side, untested)
  tails <- sum(ifelse(sides != 0, 1, 2))
  tail <- pt(ifelse(side != 0, side * t_value, abs(t_value)), own_df, lower.tail = FALSE)
  p <- pmin(1, tails * tail)
  limit <- alpha / tails
  if (length(sides) > 1) {
    set.seed(1)
    e <- eigen(R, symmetric = TRUE)
    draws <- 200000
    z <- matrix(rnorm(draws * nrow(R)), draws) %*% (sqrt(pmax(e$values, 0)) * t(e$vectors))
    if (is.finite(df)) z <- z / sqrt(rchisq(draws, df) / df)
    z <- sapply(seq_len(ncol(z)), function(k) if (sides[k]) sides[k] * z[, k] else abs(z[, k]))
    largest <- sort(do.call(pmax, as.data.frame(z)))
    joint <- 1 - findInterval(qt(tail, df, lower.tail = FALSE), largest, left.open = TRUE) / draws
    p <- pmin(p, joint)
    limit <- pmax(limit, pt(quantile(largest, 1 - alpha, names = FALSE), df, lower.tail = FALSE))
  }
  reach <- qt(limit, own_df, lower.tail = FALSE)
  report <- function(name) sapply(tests, function(one) one$test[[name]])
  se <- sapply(tests, `[[`, "se")
  estimate <- sapply(tests, `[[`, "estimate")
  furthest <- report("furthest")
  low <- ifelse(side < 0, -Inf, pmax(estimate - reach * se, -furthest))
  high <- ifelse(side > 0, Inf, pmin(estimate + reach * se, furthest))
  apart <- function(a, b) ifelse(is.finite(a) | is.finite(b), abs(a - b), 0)
  # A difference that another family tests too can have that family's p and interval, which is then the wider.
  own <- !sapply(tests, function(one) isTRUE(one$test$elsewhere == 1))
  # drawn ends scatter with their distance from the estimate, which few degrees of freedom make long
  half <- pmax(reach, 1) * se
  ends <- pmax(apart(low, report("low")), apart(high, report("high"))) / half
  narrower <- pmax(ifelse(is.finite(low), report("low") - low, 0), ifelse(is.finite(high), high - report("high"), 0)) / half
  off <- c(
    "adjusted p" = max(abs(p - report("p_adjusted"))[own], 0),
    "ends of intervals, in half-widths" = max(ends[own], narrower[!own]))
  told(paste("family", family), off, c(0.01, 0.02), sprintf("(%d test%s; simulated)", all_tests, if (all_tests == 1) "" else "s"))
}
