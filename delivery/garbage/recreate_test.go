package garbage

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestOnlyImmutableObjectsWithoutLossAreRecreated(t *testing.T) {
	claim, deployment := schema.GroupKind{Kind: "PersistentVolumeClaim"}, schema.GroupKind{Group: "apps", Kind: "Deployment"}
	exists := apierrors.NewAlreadyExists(schema.GroupResource{}, "web")
	for name, tc := range map[string]struct {
		kind            schema.GroupKind
		dryRun          error
		immutable, loss bool
	}{
		"it exists":          {deployment, exists, true, false},
		"it is gone":         {deployment, nil, true, false},
		"it is invalid":      {deployment, apierrors.NewInvalid(deployment, "web", nil), false, false},
		"the request failed": {deployment, errors.New("no answer"), false, false},
		"a claim exists":     {claim, exists, true, true},
		"a claim is invalid": {claim, apierrors.NewInvalid(claim, "web", nil), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if immutable, loss := Recreatable(tc.kind, tc.dryRun); immutable != tc.immutable || (loss != "") != tc.loss {
				t.Errorf("immutable %t, loss %q", immutable, loss)
			}
		})
	}
}
