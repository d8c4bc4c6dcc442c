package cycle

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodesOnCyclesAreFoundWithTheirShortestWay(t *testing.T) {
	tests := map[string]struct {
		// edges are "a→bc": a depends on b and c.
		edges string
		// want are the nodes on cycles, each with its shortest way.
		want map[string]string
	}{
		"a line":                           {edges: "a→b b→c"},
		"a diamond":                        {edges: "a→bc b→d c→d"},
		"a node on itself":                 {edges: "a→ab b→", want: map[string]string{"a": "aa"}},
		"two, and one that waits for them": {edges: "a→b b→a c→a", want: map[string]string{"a": "aba", "b": "bab"}},
		"a long way and a short one":       {edges: "a→bd b→c c→a d→a", want: map[string]string{"a": "ada", "b": "bcab", "c": "cabc", "d": "dad"}},
		"two that do not meet":             {edges: "a→b b→ac c→d d→c", want: map[string]string{"a": "aba", "b": "bab", "c": "cdc", "d": "dcd"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			edges := map[string][]string{}
			for _, e := range strings.Fields(tc.edges) {
				from, to, _ := strings.Cut(e, "→")
				edges[from] = strings.Split(to, "")
			}
			g := New(func(node string) []string { return edges[node] })
			var got map[string]string
			for node := range edges {
				if g.Has(node) {
					if got == nil {
						got = map[string]string{}
					}
					got[node] = strings.Join(g.Shortest(node), "")
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("nodes on cycles (-want +got):\n%s", diff)
			}
		})
	}
}
