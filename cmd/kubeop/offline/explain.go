package offline

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/docs"
)

// Explain returns the command explain.
func Explain(c *call.Call) *cobra.Command {
	all := explanations(docs.Errors)
	return &cobra.Command{
		Use:   "explain CODE",
		Short: "Explain the code of a problem, or the reason of a condition",
		Long: `Explain the code of a problem in a file, such as unknown-field, with an example and what to do, or the reason of a condition, such as Held. The
explanations are those of docs/errors.md. It needs no cluster and no network.`,
		Example: `  # A code that kubeop validate prints
  kubeop explain unknown-field

  # A reason that kubectl describe prints
  kubeop explain DeletionsHeld`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: slices.Sorted(maps.Keys(all)),
		RunE: func(_ *cobra.Command, args []string) error {
			text, known := all[strings.Trim(args[0], "[]")]
			if !known {
				return fmt.Errorf("no code or reason %q; the completion of the shell lists all", args[0])
			}
			_, err := fmt.Fprintln(c.Out, text)
			return err
		},
	}
}

// sectionHead is the heading of a section about a code. row is a row of the table of reasons: the reason, what it means, and links to pages.
var (
	sectionHead = regexp.MustCompile("(?m)^### `([a-z-]+)`\n+")
	row         = regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (.*) \\| (\\[.*\\)) \\|$")
)

// explanations returns what a page says about each code and reason, in Markdown.
func explanations(page string) map[string]string {
	all := map[string]string{}
	codes, reasons, _ := strings.Cut(page, "\n## Reasons\n")
	heads := sectionHead.FindAllStringSubmatchIndex(codes, -1)
	for i, head := range heads {
		end := len(codes)
		if i+1 < len(heads) {
			end = heads[i+1][0]
		}
		all[codes[head[2]:head[3]]] = strings.TrimSpace(codes[head[1]:end])
	}
	for _, reason := range row.FindAllStringSubmatch(reasons, -1) {
		all[reason[1]] = reason[2] + "\n\nWhat to do: " + strings.ReplaceAll(reason[3], "](", "](docs/")
	}
	return all
}
