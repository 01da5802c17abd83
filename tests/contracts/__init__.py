"""Contracts: who may import whom, how light the package is, and what pages may say."""
