package quota

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	contended = apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "kubeop", errors.New("the object has been modified"))
	conflict  = apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "web", errors.New("the object has been modified"))
	exceeded  = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("exceeded quota: kubeop, requested: pods=1"))
	forbidden = apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "web", errors.New("no right"))
)

func TestRefusalsByAQuotaAreRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		err                 error
		contended, exceeded bool
	}{
		"a conflict about the quota": {fmt.Errorf("Pod/web: %w", contended), true, false},
		"another conflict":           {conflict, false, false},
		"over the quota":             {fmt.Errorf("Pod/web: %w", exceeded), false, true},
		"another refusal":            {forbidden, false, false},
		"the same words":             {errors.New("exceeded quota: kubeop"), false, false},
		"none":                       {nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got, over := Contended(c.err), Exceeded(c.err); got != c.contended || over != c.exceeded {
				t.Errorf("contended: %t, exceeded: %t", got, over)
			}
		})
	}
}

func TestOnlyAConflictAboutTheQuotaIsRetried(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"a conflict about the quota": {contended, 2},
		"another conflict":           {conflict, 1},
		"over the quota":             {exceeded, 1},
		"none":                       {nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			err := Retry(func() error {
				if calls++; calls > 1 {
					return nil
				}
				return c.err
			})
			if calls != c.want || (err == nil) != (c.want == 2 || c.err == nil) {
				t.Errorf("%d calls, %v", calls, err)
			}
		})
	}
}
