"""Finds lasting changes in series of times. Pure functions from numbers to dataclasses.

Everything is computed on logarithms, so that a change is a ratio and the unit does not matter.

1. Single points that stand out from both neighbours are set aside: a busy moment, not a change.
2. The best piecewise constant fit under a penalty, by PELT (Killick, Fearnhead, Eckley, J. Am. Stat. Assoc. 107, 2012) as
   ruptures has it (Truong, Oudre, Vayatis, Signal Processing 167, 2020). The penalty is low: it proposes, the tests decide.
3. The weakest step is removed until all that are left pass a t-test, as in Otava (Fleming et al., ICPE 2023), but with the
   p-value multiplied by the number of places where the step could have been, since the place was picked for its step.
4. Which series changed at all is decided for all of them together (Benjamini and Hochberg, J. R. Stat. Soc. B 57, 1995).

A series of five points knows little of its own noise, but hundreds of others were measured beside it. So every variance is
drawn towards that of the others by as much as they agree (Smyth, Stat. Appl. Genet. Mol. Biol. 3, 2004).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import ruptures
from scipy import optimize, special, stats

LEVEL = 0.01  # share of the series called changed that may be false alarms
MIN_POINTS = 4  # minimum number of points of a series: with three, one side of every step is one point
SHORT = 10  # points below which a series cannot know its own noise
MIN_LEVEL_POINTS = 3  # points that a level between two others must have: two in a row are too often one bad hour
LONE = 4.0  # times the noise by which a single point stands out from its neighbours
MIN_CHANGE = 0.01  # smallest change to report: identical code varies this much with its memory layout
FLOOR = 0.001  # relative noise that no clock gets below
INTERVAL = 0.95
STEP, DRIFT, ALONE = "step", "drift", "alone"


@dataclass(frozen=True)
class Series:
    """One value for every commit, in the order of the commits; NaN if there is none.

    spread: half the interquartile range over the median of the samples of a typical commit, 0 if they are not known.
    """

    values: Sequence[float] | np.ndarray
    spread: float = 0.0


@dataclass(frozen=True)
class Change:
    """A series left one level for another.

    kind: STEP; DRIFT where a straight line fits as well, so that no commit is to blame; ALONE where only one point shows it.
    last, first: places of the neighbouring points between which the step most likely lies.
    good, changed: the same for the 95 % set of places: the step lies after `good` and not after `changed`.
    before, after: the levels on either side. ratio: after over before, from low to high with 95 % confidence.
    p_value: corrected for the number of places.
    """

    kind: str
    last: int
    first: int
    good: int
    changed: int
    before: float
    after: float
    ratio: float
    low: float
    high: float
    p_value: float


@dataclass(frozen=True)
class Finding:
    """The changes of a series. points: its values. noise: their relative standard deviation around its levels."""

    points: int
    noise: float = math.nan
    changes: tuple[Change, ...] = ()

    @property
    def short(self) -> bool:
        """Too short to be judged."""
        return self.points < MIN_POINTS


@dataclass(frozen=True)
class _Prior:
    """The prior of the variance of a series from all series, with its degrees of freedom."""

    variance: float = 0.0
    freedom: float = 0.0


@dataclass
class _Fit:
    """A series under judgement: logarithms y at places x, single points set aside, and where pieces of y begin."""

    x: np.ndarray
    y: np.ndarray
    aside: list[tuple[int, float]]
    rough: float  # the noise before the series was cut
    least: float  # the lower bound of the noise
    starts: list[int] = field(default_factory=list)

    @property
    def points(self) -> int:
        return len(self.y) + len(self.aside)

    def pieces(self) -> list[tuple[int, int]]:
        return list(itertools.pairwise([0, *self.starts, len(self.y)]))

    def residual(self) -> tuple[float, int]:
        """Sum of squares around the levels, and its degrees of freedom."""
        pieces = self.pieces()
        squares = sum(_squares(self.y[a:b]) for a, b in pieces)
        if self.points < SHORT:
            return squares, len(self.y) - len(pieces)
        # Left out altogether, the points set aside would make noise with heavy tails look small.
        return squares + len(self.aside) * (LONE * self.rough) ** 2, self.points - len(pieces)

    def noise(self, prior: _Prior) -> tuple[float, float]:
        """Standard deviation, and its degrees of freedom."""
        squares, freedom = self.residual()
        together = prior.freedom + freedom
        return max(self.least, math.sqrt((prior.freedom * prior.variance + squares) / together)), together


def judge(series: Sequence[Series]) -> list[Finding]:
    """Find the changes of each series, with all series as one family, in the order given."""
    present = [_present(one) for one in series]
    enough = [i for i, (x, _) in enumerate(present) if len(x) >= MIN_POINTS]
    findings = [Finding(len(x)) for x, _ in present]
    if not enough:
        return findings
    rough = {i: _roughness(present[i][1]) for i in enough}
    typical = float(np.median(list(rough.values())))
    fits = {}
    for i in enough:
        least = max(FLOOR, series[i].spread if len(present[i][0]) < SHORT else 0.0)
        # The few steps of a short series cannot tell noise from change: the others' noise proposes, its own decides.
        noise = max(least, typical if len(present[i][0]) < SHORT else rough[i])
        fits[i] = _propose(*present[i], noise, least)
    prior = _prior([fit.residual() for fit in fits.values()])
    for fit in fits.values():
        _settle(fit, prior, LEVEL, LEVEL)
    p_values = [min((change.p_value for change in _changes(fit, prior)), default=1.0) for fit in fits.values()]
    picked = int(np.sum(stats.false_discovery_control(p_values) <= LEVEL))
    level = LEVEL * max(picked, 1) / len(fits)
    for i, fit in fits.items():
        # The rule counts series: it grants its level to one step of each, and any more are held to Bonferroni's.
        _settle(fit, prior, level, LEVEL / len(fits))
        changes = tuple(change for change in _changes(fit, prior) if change.p_value <= level)
        findings[i] = Finding(fit.points, fit.noise(prior)[0], changes)
    return findings


def _present(series: Series) -> tuple[np.ndarray, np.ndarray]:
    """Places and logarithms of the values that are there."""
    values = np.asarray(series.values, float)
    places = np.flatnonzero(np.isfinite(values) & (values > 0))
    return places, np.log(values[places])


def _roughness(y: np.ndarray) -> float:
    """Standard deviation of the noise from neighbours' differences, which a few steps do not change."""
    return float(np.median(np.abs(np.diff(y)))) / (math.sqrt(2) * stats.norm.ppf(0.75))


def _propose(x: np.ndarray, y: np.ndarray, noise: float, least: float) -> _Fit:
    """Set single points aside and cut the rest into more pieces than will stay."""
    lone = _lone(y, noise)
    fit = _Fit(x[~lone], y[~lone], list(zip(x[lone].tolist(), y[lone].tolist(), strict=True)), noise, least)
    if len(fit.y) >= MIN_POINTS:
        # Twice the logarithm: a step is two parameters, its size and its place (Schwarz's criterion).
        penalty = 2 * math.log(len(fit.y)) * noise**2
        fit.starts = ruptures.KernelCPD(kernel="linear", min_size=2).fit_predict(fit.y[:, None], pen=penalty)[:-1]
    return fit


def _lone(y: np.ndarray, noise: float) -> np.ndarray:
    """Which points stand out to one side from the points next to them, and from the medians of three either way."""
    lone = np.zeros(len(y), bool)
    step = np.concatenate([[math.inf], np.abs(np.diff(y)), [math.inf]])
    for i in np.flatnonzero((step[:-1] > LONE * noise) & (step[1:] > LONE * noise)):
        sides = [side for side in (y[max(0, i - 3) : i], y[i + 1 : i + 4][::-1]) if len(side)]
        away = y[i] - np.array([level for side in sides for level in (side[-1], np.median(side))])
        lone[i] = min(away) > LONE * noise or max(away) < -LONE * noise
    # Where every other point stands out, it is the noise that is larger.
    return lone if 4 * lone.sum() <= len(y) else np.zeros(len(y), bool)


def _prior(residuals: Sequence[tuple[float, int]]) -> _Prior:
    """Fit the distribution of the variances by the moments of their logarithms (Smyth 2004, section 6.2)."""
    known = [(max(squares / freedom, FLOOR**2), freedom) for squares, freedom in residuals if freedom]
    if len(known) < 2:
        return _Prior()
    variance, freedom = np.array(known).T
    logs = np.log(variance) - special.digamma(freedom / 2) + np.log(freedom / 2)
    excess = float(np.var(logs, ddof=1) - np.mean(special.polygamma(1, freedom / 2)))
    most = float(freedom.sum())  # the prior has at most the observed degrees of freedom
    half = most / 2
    if excess > special.polygamma(1, half):
        half = optimize.brentq(lambda x: float(special.polygamma(1, x)) - excess, 1e-3, half)
    return _Prior(math.exp(float(logs.mean()) + float(special.digamma(half)) - math.log(half)), 2 * half)


def _settle(fit: _Fit, prior: _Prior, level: float, several: float) -> None:
    """Take the weakest step away until all p-values are within a level: that for several, or that for the only one left."""
    while fit.starts:
        noise, freedom = fit.noise(prior)
        pieces = [fit.y[a:b] for a, b in fit.pieces()]
        passing = [0 < i < len(pieces) - 1 and len(piece) < MIN_LEVEL_POINTS for i, piece in enumerate(pieces)]
        strength = []
        for i, (left, right) in enumerate(itertools.pairwise(pieces)):
            p_value = 1.0 if passing[i] or passing[i + 1] else _p_value(left, right, fit.points, noise, freedom)
            strength.append((-p_value, abs(right.mean() - left.mean())))
        weakest = strength.index(min(strength))
        if -strength[weakest][0] <= (several if len(fit.starts) > 1 else level):
            return
        del fit.starts[weakest]
        # What is left of a pair of steps may now fit better a little further on: each as the other stood, so that neither has
        # the first choice, and none where they would pass each other.
        bounds = [0, *fit.starts, len(fit.y)]
        pair = range(max(0, weakest - 1), min(weakest + 1, len(fit.starts)))
        moved = [bounds[i] + 1 + int(np.argmax(_gain(fit.y[bounds[i] : bounds[i + 2]]))) for i in pair]
        if moved == sorted(set(moved)):
            fit.starts[pair.start : pair.stop] = moved


def _p_value(left: np.ndarray, right: np.ndarray, points: int, noise: float, freedom: float) -> float:
    """The probability of a step as large as this without any, over all places where it could have been."""
    size = min(abs(float(middle(right) - middle(left))) for middle in (np.mean, np.median))
    if size < math.log1p(MIN_CHANGE):
        return 1.0
    t = size / (noise * math.sqrt(1 / len(left) + 1 / len(right)))
    return min(1.0, 2 * float(special.stdtr(freedom, -t)) * (points - 1))


def _changes(fit: _Fit, prior: _Prior) -> list[Change]:
    """Every step of a fit, or its drift, and every point that was set aside, in the order of the commits."""
    noise, freedom = fit.noise(prior)
    pieces = fit.pieces()
    levels = [fit.y[a:b] for a, b in pieces]

    def change(kind: str, where: Iterable[int], left: np.ndarray, right: np.ndarray) -> Change:
        p_value = _p_value(left, right, fit.points, noise, freedom)
        half = noise * math.sqrt(1 / len(left) + 1 / len(right)) * float(special.stdtrit(freedom, (1 + INTERVAL) / 2))
        last, first, good, changed = map(int, where)
        levels = math.exp(left.mean()), math.exp(right.mean())
        ratio, margin = levels[1] / levels[0], math.exp(half)
        return Change(kind, last, first, good, changed, *levels, ratio, ratio / margin, ratio * margin, p_value)

    found = []
    if fit.starts and _drifts(fit.x, fit.y, fit.starts, noise):
        found.append(change(DRIFT, fit.x[[0, -1, 0, -1]], levels[0], levels[-1]))
    else:
        for (a, b), (_, c) in itertools.pairwise(pieces):
            x, y = fit.x[a:c], fit.y[a:c]
            if _drifts(x, y, [b - a], noise):
                kind, where = DRIFT, x[[0, -1, 0, -1]]
            else:
                begins = _begins(y, noise)
                kind, where = STEP, x[[b - a - 1, b - a, begins[0] - 1, begins[-1]]]
            found.append(change(kind, where, y[: b - a], y[b - a :]))
    for place, value in fit.aside:
        at = int(np.searchsorted(fit.x, place))
        beside = [level for (a, b), level in zip(pieces, levels, strict=True) if {at - 1, at} & set(range(a, b))]
        level, alone = np.concatenate(beside), np.array([value])
        if at:
            found.append(change(ALONE, [fit.x[at - 1], place] * 2, level, alone))
        else:
            found.append(change(ALONE, [place, fit.x[0]] * 2, alone, level))
    return sorted(found, key=lambda change: change.first)


def _drifts(x: np.ndarray, y: np.ndarray, starts: Sequence[int], noise: float) -> bool:
    """Whether a straight line explains y better than these steps, each of which has a size and a place to choose."""
    steps = sum(_squares(piece) for piece in np.split(y, starts))
    return _line(x, y) < steps + (2 * len(starts) - 1) * math.log(len(y)) * noise**2


def _begins(y: np.ndarray, noise: float) -> np.ndarray:
    """Where a step in the middle of y begins, with 95 % probability: by the likelihood of every place, all alike before."""
    gain = _gain(y)
    share = np.exp((gain - gain.max()) / (2 * noise**2))
    likeliest = np.argsort(-share, kind="stable")
    needed = int(np.searchsorted(np.cumsum(share[likeliest]), INTERVAL * share.sum())) + 1
    return 1 + np.sort(likeliest[:needed])


def _gain(y: np.ndarray) -> np.ndarray:
    """By how much a step at each place of y, but for the first, lessens the sum of squares."""
    count = np.arange(1, len(y))
    return np.cumsum(y - y.mean())[:-1] ** 2 * (1 / count + 1 / (len(y) - count))


def _squares(y: np.ndarray) -> float:
    return float(np.sum((y - y.mean()) ** 2))


def _line(x: np.ndarray, y: np.ndarray) -> float:
    """Sum of squares around the straight line through y."""
    x, y = x - x.mean(), y - y.mean()
    return float(np.sum(y**2) - np.sum(x * y) ** 2 / np.sum(x**2))
