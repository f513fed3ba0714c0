"""A scheme of a source is known to the CRD, to the parser, and to a file that opens it; or to none of them."""

from typing import get_args

from pilotage.api.model import SCHEMES
from pilotage.models import source, sources


def test_the_crd_accepts_the_schemes_that_can_be_parsed():
    assert set(SCHEMES) == set(source._PARSERS)


def test_every_kind_of_source_has_a_file():
    assert set(sources._FILES) == set(get_args(source.Source))
