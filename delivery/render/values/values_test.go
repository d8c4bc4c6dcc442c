package values

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/render"
	"github.com/kubeop/kubeop/delivery/yamlcheck"
	"github.com/kubeop/kubeop/internal/testenv/rendering"
	"github.com/kubeop/kubeop/internal/testenv/sources"
)

// secret is in every Secret of these tests, and must be in no error.
const secret = "hunter2"

var errForbidden = errors.New("forbidden")

func lookup(kind, name string) (map[string][]byte, error) {
	objects := map[string]map[string]string{
		"ConfigMap/plain":  {"values.yaml": "a: {x: map, y: map}\nlist: [9]\n", "tag": "v1", "bad": "- 1"},
		"ConfigMap/other":  {"values.yaml": "a: {x: other}\n"},
		"ConfigMap/empty":  {"values.yaml": ""},
		"Secret/creds":     {"values.yaml": "password: " + secret, "password": secret, "number": "42", "list": "- " + secret, "bad": secret + ": [\n" + secret, "alias": "a: *" + secret},
		"Secret/bomb":      {"values.yaml": "a: &a " + strings.Repeat(secret, 1000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]"},
		"ConfigMap/nulled": {"values.yaml": "a: null\n"},
	}
	if name == "forbidden" {
		return nil, errForbidden
	}
	found, ok := objects[kind+"/"+name]
	if !ok {
		return nil, render.ErrMissing
	}
	data := map[string][]byte{}
	for key, value := range found {
		data[key] = []byte(value)
	}
	return data, nil
}

var appFolder = rendering.Repository(map[string]string{
	"values.yaml":  "a: {x: file, z: file}\nlist: [1, 2]\nreplicas: 3\n",
	"prod.yaml":    "a: {x: prod}\n",
	"nothing.yaml": "# nothing\n",
	"null.yaml":    "a: {x: null}\nlist: null\n",
	"scalar.yaml":  "a: text\n",
	"list.yaml":    "- 1\n",
	"broken.yaml":  "a: b\nb: c: d\n",
	"anchor.yaml":  "a: &y 1\nb: *x\n",
	"open.yaml":    "a: b\nb: [c\n",
	"indent.yaml":  "a: 1\nb:\n  c: 1\n d: 2\n",
	"tab.yaml":     "\ta: b\n",
	"bomb.yaml":    "a: &a " + strings.Repeat("x", 2000) + "\nb: [" + strings.Repeat("*a, ", 1000) + "]",
})

func TestLaterValuesWin(t *testing.T) {
	tests := map[string]struct{ helm, want string }{
		"nothing":                       {`{}`, `{}`},
		"one file":                      {`{valuesFiles: [values.yaml]}`, `{a: {x: file, z: file}, list: [1, 2], replicas: 3}`},
		"a file without values":         {`{valuesFiles: [values.yaml, ./nothing.yaml]}`, `{a: {x: file, z: file}, list: [1, 2], replicas: 3}`},
		"later files win, deep":         {`{valuesFiles: [values.yaml, prod.yaml]}`, `{a: {x: prod, z: file}, list: [1, 2], replicas: 3}`},
		"the order of files counts":     {`{valuesFiles: [prod.yaml, values.yaml]}`, `{a: {x: file, z: file}, list: [1, 2], replicas: 3}`},
		"null replaces and stays":       {`{valuesFiles: [values.yaml, null.yaml]}`, `{a: {x: null, z: file}, list: null, replicas: 3}`},
		"a text replaces a mapping":     {`{valuesFiles: [values.yaml, scalar.yaml]}`, `{a: text, list: [1, 2], replicas: 3}`},
		"a mapping replaces a text":     {`{valuesFiles: [scalar.yaml, prod.yaml]}`, `{a: {x: prod}}`},
		"references win over files":     {`{valuesFiles: [values.yaml], valuesFrom: [{kind: ConfigMap, name: plain}]}`, `{a: {x: map, y: map, z: file}, list: [9], replicas: 3}`},
		"the order of references":       {`{valuesFrom: [{kind: ConfigMap, name: plain}, {kind: ConfigMap, name: other}]}`, `{a: {x: other, y: map}, list: [9]}`},
		"a null, then a mapping":        {`{valuesFrom: [{kind: ConfigMap, name: nulled}, {kind: ConfigMap, name: other}]}`, `{a: {x: other}}`},
		"an empty reference":            {`{valuesFrom: [{kind: ConfigMap, name: empty}]}`, `{}`},
		"inline values win over all":    {`{valuesFiles: [values.yaml], valuesFrom: [{kind: ConfigMap, name: plain}], values: {a: {x: inline, w: inline}, list: []}}`, `{a: {x: inline, y: map, z: file, w: inline}, list: [], replicas: 3}`},
		"a key":                         {`{valuesFrom: [{kind: ConfigMap, name: plain, valuesKey: tag, targetPath: image.tag}]}`, `{image: {tag: v1}}`},
		"a path into an earlier value":  {`{valuesFrom: [{kind: ConfigMap, name: plain}, {kind: Secret, name: creds, valuesKey: password, targetPath: a.x}]}`, `{a: {x: hunter2, y: map}, list: [9]}`},
		"inline values win over a path": {`{valuesFrom: [{kind: ConfigMap, name: plain, valuesKey: tag, targetPath: tag}], values: {tag: v2}}`, `{tag: v2}`},
		"optional, no object":           {`{valuesFrom: [{kind: Secret, name: missing, optional: true}]}`, `{}`},
		"optional, no key":              {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: missing, optional: true}]}`, `{}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := Merge(helm(t, tc.helm), appFolder, lookup)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]any{}
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("values (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAScalarAtAPathHasItsType: charts compare numbers and booleans.
func TestAScalarAtAPathHasItsType(t *testing.T) {
	got, err := Merge(helm(t, `{valuesFrom: [{kind: Secret, name: creds, valuesKey: number, targetPath: replicas}]}`), appFolder, lookup)
	if err != nil || got["replicas"] != int64(42) {
		t.Errorf("replicas is %#v, %v", got["replicas"], err)
	}
}

func TestUnusableValuesAreExplained(t *testing.T) {
	const notMapping = "the content is not a YAML mapping"
	tests := map[string]struct {
		helm, want string
		is         error
	}{
		"missing file":         {`{valuesFiles: [x.yaml]}`, "valuesFiles: x.yaml: not in the repository", fs.ErrNotExist},
		"file outside":         {`{valuesFiles: [../x.yaml]}`, `valuesFiles: path "../x.yaml" must be relative and stay inside the app's folder`, nil},
		"file of a list":       {`{valuesFiles: [list.yaml]}`, `list.yaml: values must be a mapping, such as "replicas: 2"`, nil},
		"broken file":          {`{valuesFiles: [broken.yaml]}`, "broken.yaml:2: broken YAML: mapping values are not allowed in this context", nil},
		"file of two anchors":  {`{valuesFiles: [anchor.yaml]}`, "anchor.yaml:2:4: broken YAML: unknown anchor 'x' referenced", nil},
		"file not closed":      {`{valuesFiles: [open.yaml]}`, "open.yaml:2: broken YAML: did not find expected ',' or ']'", nil},
		"file with bad indent": {`{valuesFiles: [indent.yaml]}`, "indent.yaml:4:2: broken YAML: did not find expected key: the line is indented by 1 space; indent it by 2, like line 3, or by 0, like line 2", nil},
		"file with a tab":      {`{valuesFiles: [tab.yaml]}`, "tab.yaml:1:1: broken YAML: found character that cannot start any token: indent by spaces instead of tabs", nil},
		"file of aliases":      {`{valuesFiles: [bomb.yaml]}`, "bomb.yaml: YAML aliases stand for more than 1048576 bytes: too large", yamlcheck.ErrTooLarge},
		"inline list":          {`{values: [1]}`, "values: json: cannot unmarshal array into Go value of type map[string]interface {}", nil},
		"missing object":       {`{valuesFrom: [{kind: Secret, name: missing}]}`, "valuesFrom: Secret missing does not exist in this namespace: create it, or correct the name in app.yaml", render.ErrMissing},
		"missing key":          {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: k}]}`, "valuesFrom: Secret creds has no key k", render.ErrMissing},
		"lookup fails":         {`{valuesFrom: [{kind: Secret, name: forbidden, optional: true}]}`, "valuesFrom: reading Secret forbidden: forbidden", errForbidden},
		"secret text":          {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: password}]}`, "valuesFrom: Secret/creds key password: " + notMapping, nil},
		"secret list":          {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: list}]}`, "valuesFrom: Secret/creds key list: " + notMapping, nil},
		"secret of no YAML":    {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: bad}]}`, "valuesFrom: Secret/creds key bad: " + notMapping, nil},
		"secret of an alias":   {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: alias}]}`, "valuesFrom: Secret/creds key alias: " + notMapping, nil},
		"secret of aliases":    {`{valuesFrom: [{kind: Secret, name: bomb}]}`, "valuesFrom: Secret/bomb key values.yaml: YAML aliases stand for more than 1048576 bytes: too large", yamlcheck.ErrTooLarge},
		"config map of a list": {`{valuesFrom: [{kind: ConfigMap, name: plain, valuesKey: bad}]}`, "valuesFrom: ConfigMap/plain key bad: " + notMapping, nil},
		"path in the way": {`{valuesFrom: [{kind: Secret, name: creds}, {kind: Secret, name: creds, valuesKey: number, targetPath: password.x}]}`,
			`valuesFrom: Secret/creds key number: targetPath "password.x": "x" is wanted in something that is not a mapping`, nil},
		"broken path": {`{valuesFrom: [{kind: Secret, name: creds, valuesKey: number, targetPath: a..b}]}`,
			`valuesFrom: Secret/creds key number: targetPath "a..b": has an empty key`, nil},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Merge(helm(t, tc.helm), appFolder, lookup)
			rendering.WantError(t, err, tc.want)
			if tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("is not %v", tc.is)
			}
			if strings.Contains(err.Error(), secret) {
				t.Error("the error holds the secret")
			}
		})
	}
}

// TestManyEntriesAreRefusedBeforeTheyAreBuilt are refused before any is built, be they of a file or of a Secret.
func TestManyEntriesAreRefusedBeforeTheyAreBuilt(t *testing.T) {
	for name, text := range map[string]string{
		"lists":          "a: [" + strings.Repeat("[],", 340_000) + "]",
		"nested lists":   "a: " + strings.Repeat("[", 340_000),
		"one line each":  strings.Repeat("- a\n", 200_000),
		"dashes":         strings.Repeat("- ", 400_000) + "a",
		"dashes in tabs": strings.Repeat("-\t", 400_000) + "a",
		"mappings":       "a: [" + strings.Repeat("{a: b},", 140_000) + "]",
		"JSON":           `{"a":[` + strings.Repeat(`{"a":1},`, 120_000) + `{}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			files := rendering.Repository(map[string]string{"values.yaml": text})
			var err error
			grew := sources.PeakHeap(t, func() { _, err = Merge(&v1alpha1.HelmSource{ValuesFiles: []string{"values.yaml"}}, files, nil) })
			if !errors.Is(err, yamlcheck.ErrTooLarge) || !strings.Contains(err.Error(), "values.yaml: has more than 100000 entries in its lists and mappings") {
				t.Errorf("got %.200v", err)
			}
			if grew > 8<<20 {
				t.Errorf("the heap grew by %d MiB", grew>>20)
			}
			from := []v1alpha1.ValuesReference{{Kind: "Secret", Name: "many"}}
			_, err = Merge(&v1alpha1.HelmSource{ValuesFrom: from}, nil, func(string, string) (map[string][]byte, error) {
				return map[string][]byte{"values.yaml": []byte(text)}, nil
			})
			if !errors.Is(err, yamlcheck.ErrTooLarge) || len(err.Error()) > 200 {
				t.Errorf("of a Secret: %.300v", err)
			}
		})
	}
	honest := strings.Repeat("    name-of-a-value: what it is\n", 30_000)
	if err := yamlcheck.Entries([]byte(honest)); err != nil {
		t.Errorf("%d bytes that somebody may write: %v", len(honest), err)
	}
}

func TestValuesFilesNeedAFolder(t *testing.T) {
	_, err := Merge(helm(t, `{valuesFiles: [a.yaml]}`), nil, lookup)
	rendering.WantError(t, err, "valuesFiles: a.yaml: the app has no folder")
	got, err := Merge(helm(t, `{values: {a: 1}}`), nil, nil)
	if diff := cmp.Diff(map[string]any{"a": 1.0}, got); err != nil || diff != "" {
		t.Errorf("error %v, values (-want +got):\n%s", err, diff)
	}
}

func TestSetPathSetsOneValue(t *testing.T) {
	tests := map[string]struct {
		values, path string
		want         string // as YAML
		wantErr      string
	}{
		"key":                  {`{}`, `a`, `{a: X}`, ""},
		"keys":                 {`{a: {c: 1}}`, `a.b`, `{a: {b: X, c: 1}}`, ""},
		"over a null":          {`{a: null}`, `a.b`, `{a: {b: X}}`, ""},
		"over a mapping":       {`{a: {b: 1}}`, `a`, `{a: X}`, ""},
		"escaped dot":          {`{}`, `a\.b.c`, `{a.b: {c: X}}`, ""},
		"escaped bracket":      {`{}`, `a\[0\]\\`, `{'a[0]\': X}`, ""},
		"list":                 {`{}`, `a[0]`, `{a: [X]}`, ""},
		"list is filled up":    {`{a: [1]}`, `a[2]`, `{a: [1, null, X]}`, ""},
		"list of mappings":     {`{a: [{b: 1, c: 2}]}`, `a[0].b`, `{a: [{b: X, c: 2}]}`, ""},
		"list of lists":        {`{a: [[1, 2]]}`, `a[0][1]`, `{a: [[1, X]]}`, ""},
		"empty":                {`{}`, ``, "", `targetPath "": has an empty key`},
		"empty key":            {`{}`, `a.`, "", `targetPath "a.": has an empty key`},
		"only an index":        {`{}`, `[0]`, "", `targetPath "[0]": has an empty key`},
		"index after a dot":    {`{}`, `a.[0]`, "", `targetPath "a.[0]": has an empty key`},
		"key after an index":   {`{}`, `a[0]b`, "", `targetPath "a[0]b": a dot must follow ], not "b"`},
		"open bracket":         {`{}`, `a[0`, "", `targetPath "a[0": [ without ]`},
		"closing bracket":      {`{}`, `a]`, "", `targetPath "a]": ] without [`},
		"backslash at the end": {`{}`, `a\`, "", `targetPath "a\\": ends with a backslash`},
		"negative index":       {`{}`, `a[-1]`, "", `targetPath "a[-1]": [-1] must hold a number from 0 to 65536`},
		"large index":          {`{}`, `a[65537]`, "", `targetPath "a[65537]": [65537] must hold a number from 0 to 65536`},
		"too deep":             {`{}`, strings.Repeat("a.", 30) + "a", "", `targetPath "` + strings.Repeat("a.", 30) + `a": has more than 30 parts`},
		"a text in the way":    {`{a: x}`, `a.b`, "", `targetPath "a.b": "b" is wanted in something that is not a mapping`},
		"a list in the way":    {`{a: []}`, `a.b`, "", `targetPath "a.b": "b" is wanted in something that is not a mapping`},
		"a mapping in the way": {`{a: {}}`, `a[0]`, "", `targetPath "a[0]": [0] is wanted in something that is not a list`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var values, want map[string]any
			if err := errors.Join(yaml.Unmarshal([]byte(tc.values), &values), yaml.Unmarshal([]byte(tc.want), &want)); err != nil {
				t.Fatal(err)
			}
			err := setPath(values, tc.path, "X")
			if tc.wantErr != "" {
				rendering.WantError(t, err, tc.wantErr)
				return
			}
			if diff := cmp.Diff(want, values); err != nil || diff != "" {
				t.Errorf("error %v, values (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestATextBecomesTheScalarThatHelmMakesOfIt(t *testing.T) {
	tests := map[string]any{
		"": "", "text": "text", "true": true, "false": false, "null": nil, "yes": "yes", "True": "True", "~": "~",
		"0": int64(0), "42": int64(42), "-7": int64(-7), "007": "007", "-07": "-07", "-0": "-0", "+1": "+1", "1.5": "1.5", "1e3": "1e3", "0x1f": "0x1f", "1_000": "1_000",
		"99999999999999999999": "99999999999999999999",
		`"42"`:                 "42", `'true'`: "true", `"`: `"`, `""`: "", `"a'`: `"a'`, `'it''s'`: "it''s",
		"line\n": "line\n", "42\n": "42\n", "{a: b}": "{a: b}",
	}
	for text, want := range tests {
		if diff := cmp.Diff(want, scalar(text)); diff != "" {
			t.Errorf("scalar(%q) (-want +got):\n%s", text, diff)
		}
	}
}

func helm(t *testing.T, source string) *v1alpha1.HelmSource {
	t.Helper()
	h := &v1alpha1.HelmSource{}
	if err := yaml.UnmarshalStrict([]byte(source), h); err != nil {
		t.Fatal(err)
	}
	return h
}

func FuzzSetPath(f *testing.F) {
	for _, seed := range []string{"a.b", `a\.b[0].c`, "a[65536]", "[0]", "a[0][0]", `\`, "a.b.c[1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		values := map[string]any{}
		if err := setPath(values, path, "X"); err != nil {
			return
		}
		steps, err := parsePath(path)
		if err != nil {
			t.Fatalf("path was set, and does not parse: %v", err)
		}
		var at any = values
		for _, s := range steps {
			if s.index < 0 {
				at = at.(map[string]any)[s.key]
			} else {
				at = at.([]any)[s.index]
			}
		}
		if at != "X" {
			t.Errorf("found %v at the path, want %q", at, "X")
		}
	})
}
