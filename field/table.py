"""Versions, and paths in them. A new version is a change of one line here (Go prints the sum that it finds)."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module at one version. `sum` is the hash that Go has for it: another content is refused."""

    path: str
    version: str
    sum: str

    def __str__(self) -> str:
        return f"{self.path}@{self.version}"


@dataclass(frozen=True, slots=True)
class Definitions:
    """CustomResourceDefinitions: a YAML file of a module, or a folder of such files."""

    module: Module
    place: str


@dataclass(frozen=True, slots=True)
class Tool:
    """A program: a package of a module."""

    module: Module
    package: str


ARGO_ROLLOUTS = Module(
    "github.com/argoproj/argo-rollouts", "v1.10.1", "h1:6oyVPGiHHxu3ixkT6mngemh88HLPDoTX1IwO6KNR1Y4="
)
CONTOUR = Module("github.com/projectcontour/contour", "v1.33.0", "h1:Aewh+Yt5DY005CGvdxtpquZWmc6/6IsDTs1ze8CvtZk=")
KSERVE = Module("github.com/kserve/kserve", "v0.15.0", "h1:TK6lN8XVIzc/5KQ76GULEKYiJ2obkTRRI3Z2Iwuld5Y=")

DEFINITIONS = {
    "argo-rollouts": Definitions(ARGO_ROLLOUTS, "manifests/crds"),
    "contour": Definitions(CONTOUR, "examples/contour/01-crds.yaml"),
    "crossplane": Definitions(
        Module("github.com/crossplane/crossplane/v2", "v2.0.2", "h1:OKA26pnm3/uFHN1zF9d2CGkkvod9H/6PrK4xmL81BgU="),
        "cluster/crds",
    ),
    "gateway-api": Definitions(
        Module("sigs.k8s.io/gateway-api", "v1.3.0", "h1:q6okN+/UKDATola4JY7zXzx40WO4VISk7i9DIfOvr9M="),
        "config/crd/standard",
    ),
    "istio": Definitions(
        Module("istio.io/api", "v1.27.0", "h1:KU1DeyIvZkY2k0pF9ZY+6D0ZVB1ZgvimaPkM55NVRWk="),
        "kubernetes/customresourcedefinitions.gen.yaml",
    ),
    "keda": Definitions(
        Module("github.com/kedacore/keda/v2", "v2.17.0", "h1:Msot3UuN6WOhaOaOcVmokmVM0cu3uqSGvnDgg1LkESU="),
        "config/crd/bases",
    ),
    # The minimal ones: those that KServe's own charts install. The full ones repeat the schema of a Pod many times.
    "kserve": Definitions(KSERVE, "config/crd/minimal"),
}

TOOLS = {
    "argo-rollouts": Tool(ARGO_ROLLOUTS, "./cmd/rollouts-controller"),
    "contour": Tool(CONTOUR, "./cmd/contour"),
    "helm": Tool(
        Module("helm.sh/helm/v4", "v4.3.1", "h1:UndCoLe9UPmNoL7IvWzaUXveL7T5t/ijoorEmgJdI9g="),
        "./cmd/helm",
    ),
    "kapp": Tool(
        Module("carvel.dev/kapp", "v0.64.2", "h1:dJhtWVOkvPPgcS0f5A4OtOlrGie9gHvabtZBvB/h0+M="),
        "./cmd/kapp",
    ),
    "kserve": Tool(KSERVE, "./cmd/manager"),
    "kube-lineage": Tool(
        Module("github.com/tohjustin/kube-lineage", "v0.5.0", "h1:M8Ogl9rVcbCsA07Y5lU55Z1sRVIpBZl0bcu4La0hJfg="),
        "./cmd/kube-lineage",
    ),
    "registry": Tool(
        Module("github.com/distribution/distribution/v3", "v3.1.2", "h1:/Bv2YIqqSR00HiO49FT93hovy6r9IlrzwUDsJjCN5qg="),
        "./cmd/registry",
    ),
}
