package columns

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestARowHasTheCellsOfTheDefinition: texts, numbers, ages, and nothing where the object has nothing.
func TestARowHasTheCellsOfTheDefinition(t *testing.T) {
	definition := func(columns ...apiextensionsv1.CustomResourceColumnDefinition) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{AdditionalPrinterColumns: columns}},
		}}
	}
	c, err := Of(definition(
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Ready", Type: "string", JSONPath: `.status.conditions[?(@.type=="Ready")].status`},
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Phase", Type: "string", JSONPath: `.status.phase`, Priority: 1},
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Grace", Type: "integer", JSONPath: `.spec.terminationGracePeriodSeconds`},
		apiextensionsv1.CustomResourceColumnDefinition{Name: "Age", Type: "date", JSONPath: `.metadata.creationTimestamp`},
	))
	if err != nil || len(c.Headers) != 5 || c.Headers[2].Priority != 1 {
		t.Fatalf("%v: %+v", err, c)
	}
	now, seconds := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), int64(30)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
	pod.Spec.TerminationGracePeriodSeconds = &seconds
	pod.Status.Conditions = []corev1.PodCondition{{Type: "Other", Status: "False"}, {Type: corev1.PodReady, Status: "True"}}
	row, err := c.Row(pod, now)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]any{"web", "True", nil, "30", "60m"}, row.Cells); diff != "" {
		t.Errorf("cells (-want +got):\n%s", diff)
	}
	if _, err := Of(definition(apiextensionsv1.CustomResourceColumnDefinition{Name: "Broken", JSONPath: "{"})); err == nil {
		t.Error("a path that is none is taken")
	}
	dated, err := Of(definition(apiextensionsv1.CustomResourceColumnDefinition{Name: "Born", Type: "date", JSONPath: `.metadata.name`}))
	if err != nil {
		t.Fatal(err)
	}
	if row, err := dated.Row(pod, now); err == nil || !strings.Contains(err.Error(), "reading the column Born of web") {
		t.Errorf("a date that is none makes the cells %v, and the error is %v", row.Cells, err)
	}
}
