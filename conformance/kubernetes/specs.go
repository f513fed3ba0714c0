// Package specs keeps the package of the end-to-end specs among this module's requirements.
package specs

import _ "k8s.io/kubernetes/test/e2e"
