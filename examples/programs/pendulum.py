"""A simulator as a program of its own: it reads parameters from its arguments and prints a log-likelihood.

Usage: pendulum.py LENGTH DAMPING. It needs nothing but Python, and could as well be written in Fortran.
"""

import math
import sys

OBSERVED = [0.45, -0.48, -0.88, -0.12, 0.6, 0.62, 0.03, -0.61, -0.41, 0.29]  # angles in radians, every 0.3 seconds
NOISE_SD = 0.05
STEPS = 30  # in 0.3 seconds


def simulated(length: float, damping: float) -> list[float]:
    """The angles of a pendulum let go at one radian, by the leapfrog scheme."""
    angle, speed, step, angles = 1.0, 0.0, 0.3 / STEPS, []
    for _ in OBSERVED:
        for _ in range(STEPS):
            speed += step * (-9.81 / length * math.sin(angle) - damping * speed)
            angle += step * speed
        angles.append(angle)
    return angles


def log_likelihood(length: float, damping: float) -> float:
    """log p(OBSERVED | length, damping), with independent normal errors."""
    residuals = [(seen - angle) / NOISE_SD for seen, angle in zip(OBSERVED, simulated(length, damping), strict=True)]
    return -0.5 * sum(r * r for r in residuals) - len(OBSERVED) * math.log(NOISE_SD * math.sqrt(2.0 * math.pi))


if __name__ == "__main__":
    length, damping = (float(argument) for argument in sys.argv[1:3])
    if length <= 0.0:
        sys.exit(f"the length must be positive, not {length}")
    print(log_likelihood(length, damping))
