package podsecurity

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/few"
	"github.com/kubeop/kubeop/delivery/policy"
)

// The values of what Fill fills in.
const (
	// FillNothing leaves pods as they are.
	FillNothing = "nothing"
	// FillBaseline fills in the runtime's seccomp profile, which restricts hardly any program. The level baseline requires nothing else,
	// and images that run as root, for which administrators choose that level, would not start with the other fields.
	FillBaseline = "baseline"
	// FillRestricted fills in everything that the level restricted requires.
	FillRestricted = "restricted"
)

// FillOf returns what to fill in for an app in a namespace of a level. By default, that is what the level requires. An app that sets
// Enabled gets what restricted requires, also at level baseline.
func FillOf(app v1alpha1.PodSecurityFill, level string) string {
	switch {
	case app == v1alpha1.FillDisabled, level != FillBaseline && level != FillRestricted:
		return FillNothing
	case app == v1alpha1.FillEnabled:
		return FillRestricted
	}
	return level
}

// Unusual returns what is filled in if that is not the default, otherwise "". It is part of what identifies a release.
func Unusual(fill string) string {
	if fill == FillRestricted {
		return ""
	}
	return fill
}

// Fill adds to the pods of objects, in place, the fields that the author left out, and returns a line about each changed object. It changes
// no field that is set and nothing of a privileged container, and fills in a field only if the level would refuse the pod without it: a pod
// that the level admits stays as it is. Calling Fill twice changes nothing.
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
		case fill == FillBaseline && !p.Fixed: // The API server would refuse the change.
			did = p.fillSeccomp()
		}
		if text := did.String(); text != "" {
			filled = append(filled, policy.NameOf(object)+": "+text)
		}
	}
	return filled
}

// work lists what was filled in: fields of the pod, and fields of containers.
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

// fillSeccomp sets the pod's seccomp profile, which applies to the containers that set none.
func (p *pod) fillSeccomp() (did work) {
	if setting(p.Spec, "seccompProfile") != nil {
		return did
	}
	if !slices.ContainsFunc(p.containers, func(c container) bool { return !c.privileged() && setting(c.fields, "seccompProfile") == nil }) {
		return did
	}
	set(p.Spec, "seccompProfile", map[string]any{"type": "RuntimeDefault"})
	did.pod = append(did.pod, "seccompProfile")
	return did
}

// fillNonRoot sets runAsNonRoot of the pod, or of single containers if the author wants another one to run as root. With a user namespace
// of its own (hostUsers: false), a pod may run as root.
func (p *pod) fillNonRoot() (did work) {
	if setting(p.Spec, "runAsNonRoot") != nil || p.Spec["hostUsers"] == false {
		return did
	}
	var lacking []container
	rooted := isRoot(setting(p.Spec, "runAsUser"))
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
		set(p.Spec, "runAsNonRoot", true)
		did.pod = append(did.pod, "runAsNonRoot")
		return did
	}
	for _, c := range lacking {
		set(c.fields, "runAsNonRoot", true)
		did.containers = append(did.containers, containerWork{name: c.name})
	}
	return did
}

// runsAsRoot reports whether the author says that a container may run as root. A privileged container breaks another rule.
func (p *pod) runsAsRoot(c container) bool {
	user := setting(c.fields, "runAsUser")
	if user == nil {
		user = setting(p.Spec, "runAsUser")
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

// fill sets the fields that only containers have, and returns their names.
func (c container) fill() (did []string) {
	if c.privileged() {
		return nil
	}
	capabilities, readable := setting(c.fields, "capabilities").(map[string]any)
	if !readable && setting(c.fields, "capabilities") != nil {
		return nil
	}
	// With this capability, the API server refuses the field, with a message that would mislead.
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

// String lists what was filled in. Containers with the same fields are listed together.
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
	return few.Line(strings.Join(parts, "; "), maxLine)
}

const (
	// maxLines limits how many lines a status lists, and maxLine the length of a line in characters.
	maxLines, maxLine = 20, 512
)

// Listed returns the lines of Fill for a status: the first 20, and how many more there are.
func Listed(filled []string) []string {
	if len(filled) <= maxLines {
		return filled
	}
	return append(slices.Clone(filled[:maxLines-1]), few.More(len(filled)-maxLines+1))
}
