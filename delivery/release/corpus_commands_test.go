package release

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestEveryHelmCommandWorksOnAReleaseOfKubeop runs every command of helm on a release of kubeop, as if helm had made it.
func TestEveryHelmCommandWorksOnAReleaseOfKubeop(t *testing.T) {
	helm := newCommand(t)
	for name, first := range map[string]step{"notes": {}, "reference": {}, "hooks-events": {}} {
		t.Run(name, func(t *testing.T) {
			all := sides(t, helm, os.DirFS("testdata/charts/"+name))
			advance(0, first, all, false)
			advance(1, step{values: "changed: true\n"}, all, false)
			for _, command := range []string{
				"list", "status web --show-resources", "status web --revision 1", "history web", "get all web", "get notes web",
				"get values web", "get values web --all", "get values web --revision 1", "get manifest web", "get hooks web",
				"get metadata web", "rollback web 1 --dry-run", "rollback web 1", "history web",
				"get values web", "upgrade web CHART --reuse-values --set changed=2", "history web", "uninstall web --keep-history", "status web",
				"rollback web 2", "history web", "uninstall web",
			} {
				alikeInWords(t, command, all)
			}
			alike("objects", all, (*side).objects)
		})
	}
}

// alikeInWords runs a command on both sides; manifests in its output are compared as objects.
func alikeInWords(t *testing.T, command string, all []*side) {
	t.Helper()
	kubeop, person := all[0].says(command), all[1].says(command)
	if diff := cmp.Diff(person, kubeop); diff != "" {
		t.Errorf("helm %s (-helm +kubeop):\n%s", command, diff)
	}
}

var (
	moments    = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d\S*( \S\d{4} UTC)?|[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ \d\d:\d\d:\d\d \d{4}`)
	ages       = regexp.MustCompile(`\b\d+(m?s|m\d+s|m)\b`)
	clusterIPs = regexp.MustCompile(`\b10\.\d+\.\d+\.\d+\b`)
	blanks     = regexp.MustCompile(`[ \t]+`)
	// separated matches a hook in kubeop's records: helm prints its separator once more.
	separated = regexp.MustCompile(`(?m)^(# Source: .*\n)---\n`)
	// ownLabels matches the labels that only kubeop's records have; `helm get metadata` shows them.
	ownLabels = regexp.MustCompile(`(?m)^LABELS:.*$`)
)

// says returns the output of the command without what differs between any two releases.
func (s *side) says(command string) []string {
	s.Helper()
	args := strings.Fields(strings.ReplaceAll(command, "CHART", s.charts))
	out, err := s.run(s.T, s.namespace, args...)
	if err != nil {
		s.Fatalf("helm %s: %v", command, err)
	}
	before, manifest, found := strings.Cut(separated.ReplaceAllString(out, "$1"), "---\n")
	for _, r := range []*regexp.Regexp{moments, ages, clusterIPs, ownLabels} {
		before = r.ReplaceAllString(before, "X")
	}
	lines := strings.Split(blanks.ReplaceAllString(before, " "), "\n")
	if found {
		manifest, notes, _ := strings.Cut(manifest, "\nNOTES:")
		fields := s.fields(s.parsed(manifest))
		for _, path := range slices.Sorted(maps.Keys(fields)) {
			lines = append(lines, path+": "+fields[path])
		}
		lines = append(lines, notes)
	}
	if strings.Contains(command, "--show-resources") {
		slices.Sort(lines) // helm prints the kinds in no order.
	}
	for i := range lines {
		lines[i] = strings.ReplaceAll(lines[i], s.namespace, "NAMESPACE")
	}
	return lines
}
