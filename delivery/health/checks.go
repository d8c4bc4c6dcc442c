package health

import (
	"fmt"

	"github.com/fluxcd/pkg/apis/kustomize"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/kubeop/kubeop/delivery/expr"
)

// Checks judge the objects of kinds for which an app has expressions, and cache the verdict on the last version of each object. They are
// not safe for concurrent use. A nil Checks has no expressions.
type Checks struct {
	kinds map[schema.GroupKind]*expr.Check
	cache map[Ref]cachedVerdict
}

// maxCached is how many verdicts are cached; when there are more, the cache is emptied.
const maxCached = 5000

// cachedVerdict is the verdict on one version of an object.
type cachedVerdict struct {
	version string
	state   state
	why     string
}

// NewChecks compiles the expressions. If there are several for one kind, the last one counts. An error names its position.
func NewChecks(specs []kustomize.CustomHealthCheck) (*Checks, error) {
	c := &Checks{kinds: map[schema.GroupKind]*expr.Check{}, cache: map[Ref]cachedVerdict{}}
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

// cached returns the verdict on an object if it is about the version that the watch shows, or about a newer one.
func (c *Checks) cached(ref Ref, version string) (cachedVerdict, bool) {
	last := c.cache[ref.plain()] // An empty version cannot be compared.
	order, err := resourceversion.CompareResourceVersion(last.version, version)
	return last, err == nil && order >= 0
}
