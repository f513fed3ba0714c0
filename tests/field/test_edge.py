"""Two Envoys of one Contour."""

from field.edge import EnvoyBeside
from pilotage.traffic.contract import Programming
from pilotage.traffic.proxies import Proxies, envoy_source, observe
from tests.support.edge import Place
from tests.traffic.moving import ContourRoutes, until


async def test_the_feed_of_one_envoy_is_held_and_that_of_the_other_is_not(edge: Place):
    async with ContourRoutes.at(edge) as contour:
        with EnvoyBeside(edge.edge) as beside:
            service, moving = await contour.service("only"), contour.moving("HTTPProxy")
            route = moving.expect(service)
            others = Proxies([envoy_source(f"unix://{beside.admin}", contour.client)])
            beside.hold()
            await moving.write(service)
            await moving.until(route)
            assert (await observe(others, route)).programming is Programming.PENDING
            beside.release()
            await until(lambda: observe(others, route), Programming.PROGRAMMED)
            await others.close()


def test_servers_have_one_address_in_networks_that_are_asked_in_one_order(edge: Place):
    with EnvoyBeside(edge.edge) as one, EnvoyBeside(edge.edge) as other:
        assert [one.backend(name) for name in ("a", "b")] == [other.backend(name) for name in ("a", "b")]
