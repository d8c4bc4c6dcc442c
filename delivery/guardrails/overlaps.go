package guardrails

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

func rangesOverlap(a, b string) bool {
	one, wrong := netip.ParsePrefix(a)
	other, alsoWrong := netip.ParsePrefix(b)
	return wrong != nil || alsoWrong != nil || one.Overlaps(other)
}

func domainsOverlap(a, b string) bool { return below([]string{a}, b) || below([]string{b}, a) }

// kindsOverlap compares kinds, and all kinds of a group as "*.<group>".
func kindsOverlap(a, b string) bool {
	ofGroup := func(all, one string) bool {
		group, any := strings.CutPrefix(all, "*.")
		_, of, _ := strings.Cut(one, ".")
		return any && of == group
	}
	return a == b || ofGroup(a, b) || ofGroup(b, a)
}

// patternsOverlap reports whether a name matches both patterns. A pattern has all names below it, too.
func patternsOverlap(a, b string) bool {
	one, other := strings.Split(a, "/"), strings.Split(b, "/")
	for i := range min(len(one), len(other)) {
		if !globsOverlap(one[i], other[i]) {
			return false
		}
	}
	return true
}

// globsOverlap reports whether a text matches both globs.
func globsOverlap(a, b string) bool {
	if !strings.Contains(a, "*") && !strings.Contains(b, "*") {
		return a == b
	}
	return wildcardsOverlap(a, b)
}

// wildcardsOverlap is globsOverlap for globs with "*". Its row j says whether what is left of a can match what is left of b after j characters.
func wildcardsOverlap(a, b string) bool {
	row := make([]bool, len(b)+1)
	for i := len(a); i >= 0; i-- {
		before := row
		row = make([]bool, len(b)+1)
		for j := len(b); j >= 0; j-- {
			switch {
			case i == len(a) && j == len(b):
				row[j] = true
			case i < len(a) && a[i] == '*' || j < len(b) && b[j] == '*': // It matches nothing more, or one character of the other.
				row[j] = i < len(a) && before[j] || j < len(b) && row[j+1]
			case i < len(a) && j < len(b):
				row[j] = a[i] == b[j] && before[j+1]
			}
		}
	}
	return row[0]
}

// patternWithin reports whether all names that a pattern has are among those of another one. Of wildcards it knows only those that stand for a whole part, and equal ones.
func patternWithin(outer, inner string) bool {
	parts, of := strings.Split(outer, "/"), strings.Split(inner, "/")
	if len(parts) > len(of) {
		return false
	}
	for i, part := range parts {
		if part != "*" && part != of[i] {
			return false
		}
	}
	return true
}

// kindWithin is patternWithin for kinds, and for all kinds of a group as "*.<group>".
func kindWithin(outer, inner string) bool {
	group, all := strings.CutPrefix(outer, "*.")
	_, of, _ := strings.Cut(inner, ".")
	return outer == inner || all && group == of
}

// schemes are those of URLs of sources; "" is that of registries.
var schemes = []string{"https", "ssh", "http", ""}

// placesOverlap reports whether a source is in both patterns.
func placesOverlap(a, b string) bool {
	return slices.ContainsFunc(schemes, func(scheme string) bool {
		one, allowed := inScheme(a, scheme)
		other, also := inScheme(b, scheme)
		return allowed && also && patternsOverlap(one, other)
	})
}

// placeWithin reports whether all sources of a pattern are refused by another one, which has every scheme if it names none.
func placeWithin(denied, entry string) bool {
	return !slices.ContainsFunc(schemes, func(scheme string) bool {
		one, allowed := inScheme(strings.ToLower(entry), scheme)
		denied := strings.ToLower(denied)
		if !strings.Contains(denied, "://") && scheme != "" {
			denied = scheme + "://" + denied
		}
		other, refused := inScheme(denied, scheme)
		return allowed && (!refused || !patternWithin(other, one))
	})
}

// toleratedBy names the taints of allowed tolerations.
func toleratedBy(tolerations []v1alpha1.AllowedToleration) (names []string) {
	for _, t := range tolerations {
		names = append(names, ToleratedBy(t))
	}
	return names
}

// tolerationsOverlap compares what ToleratedBy returns. What is left out is every value or effect.
func tolerationsOverlap(a, b string) bool {
	one, effect, _ := strings.Cut(a, ":")
	other, otherEffect, _ := strings.Cut(b, ":")
	key, value, valued := strings.Cut(one, "=")
	otherKey, otherValue, otherValued := strings.Cut(other, "=")
	return key == otherKey && (!valued || !otherValued || value == otherValue) && (effect == "" || otherEffect == "" || effect == otherEffect)
}

// portsOf names ports, such as "TCP/443-444".
func portsOf(ports []v1alpha1.EgressPort) (names []string) {
	for _, p := range ports {
		names = append(names, fmt.Sprintf("%s/%d-%d", cmp.Or(p.Protocol, string(corev1.ProtocolTCP)), p.Port, max(p.Port, p.EndPort)))
	}
	return names
}

// portsOfNodes is portsOf for ports of nodes.
func portsOfNodes(ranges []v1alpha1.NodePortRange) []string {
	ports := make([]v1alpha1.EgressPort, len(ranges))
	for i, r := range ranges {
		ports[i] = v1alpha1.EgressPort{Port: r.Port, EndPort: r.EndPort}
	}
	return portsOf(ports)
}

// portsOverlap compares what portsOf returns.
func portsOverlap(a, b string) bool {
	var one, other struct{ first, last int }
	protocol, ports, _ := strings.Cut(a, "/")
	otherProtocol, otherPorts, _ := strings.Cut(b, "/")
	for text, into := range map[string]*struct{ first, last int }{ports: &one, otherPorts: &other} {
		if _, err := fmt.Sscanf(text, "%d-%d", &into.first, &into.last); err != nil {
			return true
		}
	}
	return protocol == otherProtocol && one.first <= other.last && other.first <= one.last
}
