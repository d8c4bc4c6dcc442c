package render

import (
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
