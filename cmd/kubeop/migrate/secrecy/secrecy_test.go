package secrecy

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// TestWithholdRemovesSecretsAndNamesTheirPaths: what is left can be written into a file, and the paths name what was removed.
func TestWithholdRemovesSecretsAndNamesTheirPaths(t *testing.T) {
	for given, want := range map[string]struct {
		left  string
		paths []string
	}{
		"{password: a, user: b}":                             {"{user: b}", []string{"password"}},
		"{auth: {existingSecret: a, rootPassword: b}}":       {"{auth: {existingSecret: a}}", []string{"auth.rootPassword"}},
		"{db: {url: 'postgres://u:p@h/db'}}":                 {"{db: {}}", []string{"db.url"}},
		"{url: 'https://example.com/a@b'}":                   {"{url: 'https://example.com/a@b'}", nil},
		"{env: [{name: API_TOKEN, value: x}], n: 1}":         {"{n: 1}", []string{"env"}},
		"{list: [{a: {b: [{apiKey: x}]}}]}":                  {"{}", []string{"list"}},
		"{tls: \"-----BEGIN RSA PRIVATE KEY-----\\nx\"}":     {"{}", []string{"tls"}},
		"{list: [[['postgres://u:p@h/db']]], n: 1}":          {"{n: 1}", []string{"list"}},
		"{list: [[a, [b]], [{c: d}]]}":                       {"{list: [[a, [b]], [{c: d}]]}", nil},
		"{list: [a, 'postgres://u:p@h/db']}":                 {"{}", []string{"list"}},
		"{list: [{a: {token: x}}]}":                          {"{}", []string{"list"}},
		"{password: ''}":                                     {"{password: ''}", nil},
		"{token: '${token}', passwordKey: k, secretName: s}": {"{token: '${token}', passwordKey: k, secretName: s}", nil},
		"{imagePullSecret: a, tokenTTL: 5, password: 5}":     {"{imagePullSecret: a, tokenTTL: 5, password: 5}", nil},
	} {
		values, left := map[string]any{}, map[string]any{}
		if err := yaml.Unmarshal([]byte(given), &values); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal([]byte(want.left), &left); err != nil {
			t.Fatal(err)
		}
		paths := Withhold(values, "")
		if diff := cmp.Diff(left, values) + cmp.Diff(want.paths, paths); diff != "" {
			t.Errorf("%s: -want +got:\n%s", given, diff)
		}
	}
}
