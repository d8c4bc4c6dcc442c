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
)

func TestConflictsAboutAQuotaAreRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"a conflict about the quota": {fmt.Errorf("Pod/web: %w", contended), true},
		"another conflict":           {conflict, false},
		"over the quota":             {exceeded, false},
		"the same words":             {errors.New("resourcequotas"), false},
		"none":                       {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Contended(c.err); got != c.want {
				t.Errorf("contended: %t, want %t", got, c.want)
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
