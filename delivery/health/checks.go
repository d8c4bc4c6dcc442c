package health

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/delivery/expr"
)

// Checks judge by expressions the kinds that an app names, and remember what they said of each object in its last version.
// They are for one look at a time. Nil knows no kind.
type Checks struct {
	kinds map[schema.GroupKind]*expr.Check
	said  map[Ref]said
}

// maxSaid is how many objects are remembered; of more each is read again.
const maxSaid = 5000

// said is a judgment of one version of an object.
type said struct {
	version string
	state   state
	why     string
}

// NewChecks compiles the expressions. Of several for one kind the last counts. An error names the place.
func NewChecks(specs []kustomize.CustomHealthCheck) (*Checks, error) {
	c := &Checks{kinds: map[schema.GroupKind]*expr.Check{}, said: map[Ref]said{}}
	for i := range specs {
		check, err := expr.NewCheck(&specs[i])
		if err != nil {
			return nil, fmt.Errorf("healthCheckExprs[%d].%w", i, err)
		}
		c.kinds[check.Kind] = check
	}
	return c, nil
}

func (c *Checks) of(kind schema.GroupKind) *expr.Check {
	if c == nil {
		return nil
	}
	return c.kinds[kind]
}

// last returns what was said of an object in the version that the watch shows, or in one since.
func (c *Checks) last(ref Ref, version string) (said, bool) {
	last, ok := c.said[ref.plain()]
	if !ok || version == "" {
		return said{}, false
	}
	order, err := resourceversion.CompareResourceVersion(last.version, version)
	return last, err == nil && order >= 0
}
