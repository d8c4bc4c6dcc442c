package document

import "testing"

func TestBrokenYAMLNamesTheLine(t *testing.T) {
	tests := map[string]struct {
		text string
		line int
	}{
		"indent":            {text: "a: 1\nb:\n  c: 1\n d: 2\n", line: 4},
		"list not closed":   {text: "a: 1\nb: [\nfoo\n", line: 2},
		"map not closed":    {text: "a: 1\nb: {c: d\ne: f\n", line: 2},
		"text not closed":   {text: "a: 1\nb: \"open\n", line: 2},
		"two colons":        {text: "a: 1\nb: x: y\n", line: 2},
		"reserved":          {text: "a: 1\nb: @x\n", line: 2},
		"tab":               {text: "a: 1\n\tb: x\n", line: 2},
		"list in map":       {text: "a: 1\n- b\n", line: 2},
		"map in list":       {text: "- b\na: 1\n", line: 2},
		"nothing expected":  {text: "a: 1\nb: 'x' y\n", line: 2},
		"content missing":   {text: "a: 1\nb: [,]\n", line: 2},
		"document start":    {text: "a: 1\n...\nb: 1\n", line: 3},
		"first line":        {text: "a: &\n", line: 1},
		"first line, open":  {text: "{a: 1", line: 1},
		"anchor":            {text: "a: 1\nb: *x\n", line: 2},
		"control character": {text: "a: 1\nb: \x01\n", line: 2},
		"no UTF-8":          {text: "a: 1\nb: \xff\n", line: 2},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := Parse("x.yaml", []byte(tc.text))
			if len(d.Findings) != 1 || d.Findings[0].Line != tc.line {
				t.Errorf("want one finding in line %d, got %+v", tc.line, d.Findings)
			}
		})
	}
}
