"""The packages; all else is in pyproject.toml, which cannot add one to those that are found."""

from setuptools import find_packages, setup

# The checkpoints lie beside the package, and within it when it is installed.
setup(
    packages=[*find_packages(include=["oxx_env*"]), "oxx_env.checkpoints"],
    package_dir={"oxx_env.checkpoints": "checkpoints"},
    package_data={"oxx_env.checkpoints": ["*/*"]},
)
