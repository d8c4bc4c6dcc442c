package finalizer

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func TestTheFinalizersThatHoldAnObjectAreNamed(t *testing.T) {
	for name, c := range map[string]struct {
		finalizers []string
		want       string
		foreign    bool
	}{
		"nothing":              {nil, "ConfigMap/web", false},
		"what it owns":         {[]string{"foregroundDeletion"}, "ConfigMap/web, until what it owns is gone", false},
		"a pod":                {[]string{"kubernetes.io/pvc-protection"}, "ConfigMap/web, until no pod uses it", false},
		"a foreign":            {[]string{"example.com/a"}, "ConfigMap/web, which the finalizer example.com/a holds", true},
		"a foreign, and a pod": {[]string{"example.com/a", "kubernetes.io/pvc-protection"}, "ConfigMap/web, which the finalizer example.com/a, kubernetes.io/pvc-protection holds", true},
	} {
		t.Run(name, func(t *testing.T) {
			got := Of("ConfigMap", &metav1.ObjectMeta{Name: "web", Finalizers: c.finalizers})
			if diff := cmp.Diff(c.want, got.String()); diff != "" || got.Foreign() != c.foreign {
				t.Errorf("foreign %t, want %t (-want +got):\n%s", got.Foreign(), c.foreign, diff)
			}
		})
	}
}

func TestAPodThatEndsByItselfNamesTheTime(t *testing.T) {
	late := Terminating{Kind: "Pod", Name: "web", Until: deleted.Time}
	if got := late.String(); got != "Pod/web, which may take until 2026-03-01T12:00:00Z to end" || late.Foreign() {
		t.Errorf("got %q, foreign %t", got, late.Foreign())
	}
}

func TestARemovalIsForcedByItsOwnNameAlone(t *testing.T) {
	now := metav1.Now()
	for name, c := range map[string]struct {
		deleted *metav1.Time
		value   string
		want    bool
	}{
		"named":               {&now, "shop", true},
		"named otherwise":     {&now, "true", false},
		"not named":           {&now, "", false},
		"named, not deleted":  {nil, "shop", false},
		"neither, not at all": {nil, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			app := &v1alpha1.App{ObjectMeta: metav1.ObjectMeta{
				Name: "shop", DeletionTimestamp: c.deleted, Annotations: map[string]string{v1alpha1.ForceRemovalAnnotation: c.value},
			}}
			if got := Forced(app); got != c.want {
				t.Errorf("got %t, want %t", got, c.want)
			}
		})
	}
}
