package podsecurity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/policy"
)

// What Fill fills in.
const (
	// FillNothing leaves pods as they are.
	FillNothing = "nothing"
	// FillBaseline fills in the runtime's seccomp profile, which restricts hardly any program. The level baseline asks for nothing more, and
	// what it is given for, images that run as root, would not start with the rest.
	FillBaseline = "baseline"
	// FillRestricted fills in all that the level restricted asks for.
	FillRestricted = "restricted"
)

// FillOf returns what to fill in for an app in a namespace of a level. By default that is what the level asks for. An app that writes
// Enabled gets what restricted asks for, at baseline too.
func FillOf(app v1alpha1.PodSecurityFill, level string) string {
	switch {
	case app == v1alpha1.FillDisabled, level != FillBaseline && level != FillRestricted:
		return FillNothing
	case app == v1alpha1.FillEnabled:
		return FillRestricted
	}
	return level
}

// Unusual returns what to fill in if it is not the usual, else "". It is part of what identifies a release.
func Unusual(fill string) string {
	if fill == FillRestricted {
		return ""
	}
	return fill
}

// Fill adds to the pods of objects, in place, what the author left out, and returns a line about each object that it changed. It changes
// nothing that is set and nothing of a privileged container, and fills in a field only where the level would refuse the pod without it: a
// pod that the level admits stays as it is. To fill in twice changes nothing.
func Fill(objects []*unstructured.Unstructured, fill string) []string {
	var filled []string
	for _, object := range objects {
		p := podOf(object)
		if p == nil || p.windows() || !p.readable() {
			continue
		}
		var did work
		switch {
		case fill == FillRestricted:
			did = p.fillRestricted()
		case fill == FillBaseline && !p.fixed: // Nothing is gained by a change that the API server would refuse.
			did = p.fillSeccomp()
		}
		if text := did.String(); text != "" {
			filled = append(filled, policy.NameOf(object)+": "+text)
		}
	}
	return filled
}

// work is what was filled in: fields of the pod, and fields of containers.
type work struct {
	pod        []string
	containers []containerWork
}

type containerWork struct {
	name   string
	fields []string
}

func (p *pod) fillRestricted() work {
	did := p.fillSeccomp()
	nonRoot := p.fillNonRoot()
	did.pod = append(did.pod, nonRoot.pod...)
	for _, c := range p.containers {
		var fields []string
		if slices.ContainsFunc(nonRoot.containers, func(w containerWork) bool { return w.name == c.name }) {
			fields = append(fields, "runAsNonRoot")
		}
		if fields = append(fields, c.fill()...); len(fields) > 0 {
			did.containers = append(did.containers, containerWork{c.name, fields})
		}
	}
	return did
}

// fillSeccomp sets the pod's seccomp profile, which counts for the containers that set none.
func (p *pod) fillSeccomp() (did work) {
	if setting(p.spec, "seccompProfile") != nil {
		return did
	}
	if !slices.ContainsFunc(p.containers, func(c container) bool { return !c.privileged() && setting(c.fields, "seccompProfile") == nil }) {
		return did
	}
	set(p.spec, "seccompProfile", map[string]any{"type": "RuntimeDefault"})
	did.pod = append(did.pod, "seccompProfile")
	return did
}

// fillNonRoot sets runAsNonRoot of the pod, or of its containers one by one if the author wants one of them to run as root. In a user
// namespace of its own a pod may run as root.
func (p *pod) fillNonRoot() (did work) {
	if setting(p.spec, "runAsNonRoot") != nil || p.spec["hostUsers"] == false {
		return did
	}
	var lacking []container
	rooted := isRoot(setting(p.spec, "runAsUser"))
	for _, c := range p.containers {
		switch {
		case p.runsAsRoot(c):
			rooted = true
		case setting(c.fields, "runAsNonRoot") == nil:
			lacking = append(lacking, c)
		}
	}
	if len(lacking) == 0 {
		return did
	}
	if !rooted {
		set(p.spec, "runAsNonRoot", true)
		did.pod = append(did.pod, "runAsNonRoot")
		return did
	}
	for _, c := range lacking {
		set(c.fields, "runAsNonRoot", true)
		did.containers = append(did.containers, containerWork{name: c.name})
	}
	return did
}

// runsAsRoot reports whether the author says that a container may run as root. A privileged one is left to the rule about it.
func (p *pod) runsAsRoot(c container) bool {
	user := setting(c.fields, "runAsUser")
	if user == nil {
		user = setting(p.spec, "runAsUser")
	}
	return c.privileged() || isRoot(user) || setting(c.fields, "runAsNonRoot") == false
}

func isRoot(user any) bool {
	switch id := user.(type) {
	case int64:
		return id == 0
	case float64:
		return id == 0
	}
	return false
}

func (c container) privileged() bool { return setting(c.fields, "privileged") == true }

// fill sets what only containers have, and returns the fields that it set.
func (c container) fill() (did []string) {
	if c.privileged() {
		return nil
	}
	capabilities, readable := setting(c.fields, "capabilities").(map[string]any)
	if !readable && setting(c.fields, "capabilities") != nil {
		return nil
	}
	// The API server refuses the field beside this capability, in words that would lead astray.
	if setting(c.fields, "allowPrivilegeEscalation") == nil && !adds(capabilities, "SYS_ADMIN", "CAP_SYS_ADMIN") {
		set(c.fields, "allowPrivilegeEscalation", false)
		did = append(did, "allowPrivilegeEscalation")
	}
	if dropped, isList := capabilities["drop"].([]any); capabilities["drop"] == nil || isList && len(dropped) == 0 {
		if capabilities == nil {
			capabilities = map[string]any{}
			set(c.fields, "capabilities", capabilities)
		}
		capabilities["drop"] = []any{"ALL"}
		did = append(did, "capabilities.drop")
	}
	return did
}

func adds(capabilities map[string]any, names ...string) bool {
	added, _ := capabilities["add"].([]any)
	return slices.ContainsFunc(added, func(one any) bool {
		name, _ := one.(string)
		return slices.Contains(names, name)
	})
}

// String lists what was filled in, containers with the same fields together.
func (w work) String() string {
	var parts []string
	if len(w.pod) > 0 {
		parts = append(parts, strings.Join(w.pod, ", "))
	}
	var order []string
	names := map[string][]string{}
	for _, c := range w.containers {
		fields := strings.Join(c.fields, ", ")
		if names[fields] == nil {
			order = append(order, fields)
		}
		names[fields] = append(names[fields], c.name)
	}
	for _, fields := range order {
		noun := "container"
		if len(names[fields]) > 1 {
			noun = "containers"
		}
		parts = append(parts, fmt.Sprintf("%s %s: %s", noun, strings.Join(names[fields], ", "), fields))
	}
	return policy.OneLine(strings.Join(parts, "; "), maxLine)
}

const (
	// maxLines bounds what a status lists of what was filled in, and maxLine a line of it, in characters.
	maxLines, maxLine = 20, 512
)

// Listed returns the lines of Fill for a status: the first 20, and how many more there are.
func Listed(filled []string) []string {
	if len(filled) <= maxLines {
		return filled
	}
	return append(slices.Clone(filled[:maxLines-1]), fmt.Sprintf("and %d objects more", len(filled)-maxLines+1))
}
