package budget

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func TestSizeCountsTheCopiesOfLargeTemplates(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
			t.Fatal(err)
		}
		return o
	}
	text := func(size int) string { return strings.Repeat("x", size) }
	cases := map[string]struct {
		object      string
		least, most int64
	}{
		"a ConfigMap":                     {"{kind: ConfigMap, data: {x: " + text(100_000) + "}}", 100_000, 100_200},
		"a Deployment":                    {"{kind: Deployment, spec: {template: {x: " + text(10_000) + "}}}", 10_000, 10_200},
		"one with a large template":       {"{kind: Deployment, spec: {template: {x: " + text(26_384) + "}}}", 26_384 + 600_000, 26_384 + 602_000},
		"a CronJob with a large template": {"{kind: CronJob, spec: {jobTemplate: {x: " + text(26_384) + "}}}", 26_384 + 600_000, 26_384 + 602_000},
		"large, and not in the template":  {"{kind: Deployment, metadata: {annotations: {x: " + text(26_384) + "}}, spec: {template: {}}}", 26_384, 26_600},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := Size([]*unstructured.Unstructured{object(c.object)}); got < c.least || got > c.most {
				t.Errorf("counted %d, want %d to %d", got, c.least, c.most)
			}
		})
	}
	one := object("{kind: ConfigMap}")
	if got, of := Size([]*unstructured.Unstructured{one, one}), Size([]*unstructured.Unstructured{one}); got != 2*of || of == 0 {
		t.Errorf("one is %d, two are %d", of, got)
	}
}

// exceeds is the limit that an error says was passed.
func exceeds(t *testing.T, err error, field string, says ...string) {
	t.Helper()
	over := &Exceeded{}
	if !errors.As(err, &over) || over.Field.Name != field {
		t.Fatalf("got %v, want the limit %s to be passed", err, field)
	}
	for _, want := range says {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
}

func TestRenderedObjectsAreCheckedAgainstTheLimits(t *testing.T) {
	object := func(data any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "x"}, "data": data}}
	}
	many := make([]any, 1000)
	for i := range many {
		many[i] = int64(1)
	}
	cases := map[string]struct {
		limits  App
		objects []*unstructured.Unstructured
		field   string
	}{
		"within":           {App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object("x"), object(nil)}, ""},
		"too many objects": {App{Objects: 1, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object("x"), object(nil)}, "appObjects"},
		"too many bytes":   {App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(strings.Repeat("x", 2000))}, "appBytes"},
		"too long a key":   {App{Objects: 2, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(map[string]any{strings.Repeat("x", 2000): true})}, "appBytes"},
		"too many values":  {App{Objects: 2, Bytes: 9000, Values: 1000}, []*unstructured.Unstructured{object(many)}, "appValues"},
		"too many in all":  {App{Objects: 9, Bytes: 2000, Values: 1000}, []*unstructured.Unstructured{object(strings.Repeat("x", 900)), object(strings.Repeat("x", 1100))}, "appBytes"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			err := c.limits.Check(c.objects)
			if c.field == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			exceeds(t, err, c.field, "spec.limits."+c.field+" of the Tenant")
		})
	}
}
