package yamlcheck

import (
	"bytes"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// nodes is what a parser builds of text, up to the first error.
func nodes(text []byte) (sum int64) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var n yaml.Node
		if decoder.Decode(&n) != nil {
			return sum
		}
		sum += count(&n)
	}
}

func count(n *yaml.Node) (sum int64) {
	sum = 1
	for _, inner := range n.Content {
		sum += count(inner)
	}
	return sum
}

// What looks like a block scalar, and is none, must count.
func TestMaxValuesIsNeverTooLow(t *testing.T) {
	dense := strings.Repeat("[],", 1000)
	cases := map[string]string{
		"a list of lists":                     "[" + dense + "]",
		"nested lists":                        strings.Repeat("- ", 500),
		"nulls":                               strings.Repeat("-\n", 1000),
		"a mapping of keys alone":             "{" + strings.Repeat("a,", 1) + "b,c,d}",
		"JSON":                                `{"a":1,"b":{"c":[1,2,3]}}`,
		"keys without values":                 "a:\nb:\nc:\n",
		"question marks":                      "? a\n? b\n? [c]\n: d\n",
		"in quotes":                           "[ \"x\n a: |\n   y\", " + dense + "]",
		"in single quotes":                    "[ 'x\n a: |\n   y', " + dense + "]",
		"in quotes with an escape":            "a: \"x\\\"\n  b: |\n   y\"\nc: [" + dense + "]",
		"in brackets":                         "a: [\n b: |\n  y, " + dense + "]",
		"a bracket in a plain text of a list": "a: [b\", \"x]\n  k: |\n   y\", " + dense + "]",
		"after a comment with a quote":        "# \"\na: |\n x\nb: [" + dense + "]",
		"an indentation that is set":          "a: |9\n  [" + dense + "]\n",
		"a carriage return":                   "a: |\n  x\r[" + dense + "]",
		"another line break":                  "a: |\n  x\u2028[" + dense + "]",
		"a line break before quotes":          "a: b\rc:\r [\"x\n a: |\n   y\", " + dense + "]",
		"a next line":                         "a: |\n  x\u0085[" + dense + "]",
		"at the end of a document":            "--- |\n[" + dense + "]\n...\n[" + dense + "]",
		"a tag":                               "a: !!str |\n  x\nb: [" + dense + "]",
		"an anchor":                           "a: &x |\n  x\nb: [" + dense + "]",
		"a document in the first line":        "--- {a: 1}\n--- [" + dense + "]",
		"a key with a blank":                  "a b: |\n  x\nc: [" + dense + "]",
		"less indented than a list's key":     "- a: |\n x\n- [" + dense + "]",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			built, got := nodes([]byte(text)), byLines([]byte(text))
			if got < built {
				t.Errorf("counted %d, and a parser builds %d", got, built)
			}
		})
	}
}

// What is no YAML but in a file of a ConfigMap does not count, and ordinary manifests do not count for much more than they are.
func TestMaxValuesIsNotFarTooHigh(t *testing.T) {
	dashboard := strings.Repeat("    {\"a\": [1, 2, {\"b\": \"c\"}], \"d\": \"e's\"},\n", 5000)
	manifest := `apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
  labels: {app.kubernetes.io/name: web}
  annotations:
    note: "it's [one] thing: another"
spec:
  replicas: 3
  template:
    spec:
      containers:
      - name: web
        image: "registry.example/web:v1"
        args: ["--port=8080", '--verbose']
        ports:
        - containerPort: 8080
        env: []
`
	cases := map[string]struct {
		text  string
		times int64
	}{
		"ordinary manifests":           {strings.Repeat(manifest+"---\n", 300), 2},
		"a file in a ConfigMap":        {"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata:\n  dashboard.json: |-\n" + dashboard, 3},
		"files after brackets":         {strings.Repeat(manifest+"---\n", 100) + "kind: ConfigMap\nargs: [\"a\", b]\ndata:\n  dashboard.json: |\n" + dashboard + "  b: >\n" + dashboard, 3},
		"a description with an accent": {"description: it's {one} of [many]\ndata:\n  x: |\n" + dashboard, 20},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			built, got := nodes([]byte(c.text)), byLines([]byte(c.text))
			if built == 0 || got > c.times*built {
				t.Errorf("counted %d, and a parser builds %d", got, built)
			}
		})
	}
}

func FuzzMaxValues(f *testing.F) {
	for _, seed := range []string{
		"a: |\n  x\nb: [1, 2]\n", "- a: >-\n    x\n  b: 'c'\n", "[ \"x\n a: |\n   y\", [],[]]", "a: {b: c}\n---\n- - x\n", "? a\n: b\n", "\"a\":1", "&a [*a]", "a: b\n  c: |\n    d\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		built := nodes([]byte(text))
		if got := byLines([]byte(text)); got < built {
			t.Errorf("counted %d, and a parser builds %d: %q", got, built, text)
		}
		if got := MaxValues([]byte(text)); got < built {
			t.Errorf("in short counted %d, and a parser builds %d: %q", got, built, text)
		}
	})
}
