package evaluate

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// TestErrorsHaveHelmsPlaces: the marks at the beginning of templates do not move the columns of first lines.
func TestErrorsHaveHelmsPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		template, place string
	}{
		"at the beginning of the first line": {`{{ fail "no" }}`, "web/templates/a.yaml:1:3"},
		"later in the first line":            {`kind: X # {{ fail "no" }}`, "web/templates/a.yaml:1:13"},
		"in another line":                    {"kind: X\n# {{ fail \"no\" }}", "web/templates/a.yaml:2:5"},
		"of a call without such a field":     {`{{ .Values.a.b.c }}`, "web/templates/a.yaml:1:"},
		"through a partial":                  {`{{ include "it" . }}`, "web/templates/a.yaml:1:3"},
	} {
		t.Run(name, func(t *testing.T) {
			newChart := func() *chart.Chart {
				return &chart.Chart{
					Metadata: &chart.Metadata{Name: "web", Version: "1.0.0", APIVersion: "v2"},
					Templates: []*chart.File{
						{Name: "templates/_it.tpl", Data: []byte(`{{ define "it" }}{{ fail "no" }}{{ end }}`)},
						{Name: "templates/a.yaml", Data: []byte(tc.template)},
					},
				}
			}
			render := func(c *chart.Chart, clients engine.ClientProvider) error {
				values, err := chartutil.ToRenderValues(c, nil, chartutil.ReleaseOptions{}, chartutil.DefaultCapabilities)
				if err != nil {
					t.Fatal(err)
				}
				_, err = engine.RenderWithClientProvider(c, values, clients)
				return err
			}
			want := render(newChart(), nil)
			if want == nil || !strings.Contains(want.Error(), tc.place) {
				t.Fatalf("Helm says %v, without %s", want, tc.place)
			}
			var noted []string
			c := newChart()
			marks := newMarks(c, func(place string) { noted = append(noted, place) })
			err := render(c, clients{ask: nobodyAsked, marks: marks})
			if err == nil || marks.corrected(err).Error() != want.Error() {
				t.Errorf("got  %v\nwant %v", marks.corrected(err), want)
			}
			if len(noted) == 0 || noted[len(noted)-1] != "template web/templates/a.yaml" {
				t.Errorf("noted %q, want the template", noted)
			}
		})
	}
}

// TestTemplatesOfSubchartsAreMarkedToo, partials are not, and a template cannot pretend to be another.
func TestTemplatesOfSubchartsAreMarkedToo(t *testing.T) {
	web := &chart.Chart{Metadata: &chart.Metadata{Name: "web"}, Templates: []*chart.File{nil, {Name: "templates/a.yaml"}, {Name: "templates/_it.tpl"}}}
	web.SetDependencies(&chart.Chart{Metadata: &chart.Metadata{Name: "sub"}, Templates: []*chart.File{{Name: "templates/b.yaml"}}})
	var noted []string
	marks := newMarks(web, func(place string) { noted = append(noted, place) })
	for number, known := range map[string]bool{"000001": true, "000002": true, "no number": true} {
		if got := marks.pass(marks.secret, number); got != known {
			t.Errorf("%s is a mark: %t", number, got)
		}
	}
	if marks.pass("guessed", "000000") {
		t.Error("a lookup with another secret is a mark")
	}
	if want := []string{"template web/charts/sub/templates/b.yaml"}; !slices.Equal(noted, want) {
		t.Errorf("noted %q, want %q", noted, want)
	}
	if got := marks.corrected(errors.New("other/a.yaml:1:99: no, web/templates/a.yaml:1:5: no")).Error(); got != "other/a.yaml:1:99: no, web/templates/a.yaml:1:5: no" {
		t.Errorf("places that no mark has moved became %s", got)
	}
}
