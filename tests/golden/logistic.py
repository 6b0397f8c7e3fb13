# SPDX-License-Identifier: Apache-2.0
"""Multinomial logistic regressions by scikit-learn (Debian: python3-sklearn), f64."""
import numpy
import torch
from sklearn.linear_model import LogisticRegression

CS = [1e-3, 1e-1, 1.0, 10.0, 1e3]


def loss(model, values, labels, c):
    """C times the sum of cross entropies, and half the square of the weights."""
    logits = values @ model.coef_.T + model.intercept_
    logits = logits - logits.max(axis=1, keepdims=True)
    log_p = logits - numpy.log(numpy.exp(logits).sum(axis=1, keepdims=True))
    return -c * log_p[numpy.arange(len(labels)), labels].sum() + (model.coef_**2).sum() / 2


def all_regressions():
    random = numpy.random.default_rng(1)
    labels = numpy.arange(90) % 5
    values = 0.8 * random.normal(size=(5, 7))[labels] + random.normal(size=(90, 7))
    result = {"values": torch.from_numpy(values), "labels": torch.from_numpy(labels)}
    for c in CS:
        model = LogisticRegression(C=c, solver="newton-cg", multi_class="multinomial", tol=1e-14, max_iter=100000)
        model.fit(values, labels)
        result[f"{c:g}.weight"] = torch.from_numpy(model.coef_)
        result[f"{c:g}.bias"] = torch.from_numpy(model.intercept_)
        result[f"{c:g}.loss"] = torch.tensor([loss(model, values, labels, c)], dtype=torch.float64)
        result[f"{c:g}.right"] = torch.tensor([int((model.predict(values) == labels).sum())])
    return result
