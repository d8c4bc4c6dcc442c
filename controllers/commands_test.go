package controllers

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fluxcd/pkg/apis/meta"
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/kubeop/kubeop/api/v1alpha1"
	"github.com/kubeop/kubeop/delivery/command"
)

// groups are the API groups of the resources in commands, by the name that kubectl accepts. Others are of the core group.
var groups = map[string]string{
	"tenants": v1alpha1.Group, "repositories": v1alpha1.Group, "projects": v1alpha1.Group, "apps": v1alpha1.Group,
	"deployments": "apps", "cronjobs": "batch", "jobs": "batch",
}

var plurals = map[string]string{"repository": "repositories", "pvc": "persistentvolumeclaims"}

func plural(resource string) string {
	switch {
	case plurals[resource] != "":
		return plurals[resource]
	case strings.HasSuffix(resource, "s"):
		return resource
	}
	return resource + "s"
}

// permissionsOf returns the permissions that a command of kubectl or helm needs.
func permissionsOf(t *testing.T, text string) []authorizationv1.ResourceAttributes {
	t.Helper()
	words := strings.Fields(text)
	namespace, operands := "", []string{}
	for i := 1; i < len(words); i++ {
		switch {
		case words[i] == "-n":
			namespace, i = words[i+1], i+1
		case !strings.HasPrefix(words[i], "-"):
			operands = append(operands, words[i])
		}
	}
	of := func(verb, resource, name string) authorizationv1.ResourceAttributes {
		resource, sub, _ := strings.Cut(resource, "/")
		return authorizationv1.ResourceAttributes{Verb: verb, Group: groups[resource], Resource: resource, Subresource: sub, Name: name, Namespace: namespace}
	}
	if words[0] == "helm" {
		return []authorizationv1.ResourceAttributes{of("list", "secrets", ""), of("get", "secrets", "x")}
	}
	verb, kind := operands[0], plural(operands[1])
	name := ""
	if len(operands) > 2 {
		name = operands[2]
	}
	switch verb {
	case "get":
		if name == "" {
			return []authorizationv1.ResourceAttributes{of("list", kind, "")}
		}
		return []authorizationv1.ResourceAttributes{of("get", kind, name)}
	case "describe":
		return []authorizationv1.ResourceAttributes{of("get", kind, name), of("list", "events", "")}
	case "wait":
		return []authorizationv1.ResourceAttributes{of("get", kind, name), of("list", kind, name), of("watch", kind, name)}
	case "logs":
		return []authorizationv1.ResourceAttributes{of("get", "deployments", "web"), of("list", "pods", ""), of("get", "pods/log", "web-0")}
	case "exec":
		return []authorizationv1.ResourceAttributes{of("get", "pods", "web-0"), of("create", "pods/exec", "web-0")}
	case "port-forward":
		return []authorizationv1.ResourceAttributes{of("get", "pods", "web-0"), of("create", "pods/portforward", "web-0")}
	case "delete":
		return []authorizationv1.ResourceAttributes{of("delete", kind, name)}
	case "scale":
		return []authorizationv1.ResourceAttributes{of("get", kind, name), of("patch", kind+"/scale", name)}
	case "run":
		return []authorizationv1.ResourceAttributes{of("create", "pods", "")}
	case "edit": // The policy kubeop-requests refuses a change of the whole object without this verb.
		return []authorizationv1.ResourceAttributes{of("update", kind, name)}
	case "annotate":
		all := []authorizationv1.ResourceAttributes{of("get", kind, name), of("patch", kind, name)}
		if strings.HasPrefix(operands[3], "paas.kubeop.io/confirm-") {
			all = append(all, of("confirm", kind, name))
		}
		return all
	case "create":
		if operands[1] == "token" {
			return []authorizationv1.ResourceAttributes{of("create", "serviceaccounts/token", name)}
		}
		if operands[1] == "job" {
			return []authorizationv1.ResourceAttributes{of("get", "cronjobs", "nightly"), of("create", "jobs", "")}
		}
		return []authorizationv1.ResourceAttributes{of("create", kind, "")}
	}
	t.Fatalf("the permissions for %q are not known", text)
	return nil
}

// may reports whether a person with the role has all permissions that a command needs.
func (n *team) may(t *testing.T, role, text string) bool {
	t.Helper()
	text = strings.NewReplacer("acme", n.name).Replace(text)
	for _, asked := range permissionsOf(t, text) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: "owners-" + role, ResourceAttributes: &asked}}
		if n.create(review); !review.Status.Allowed {
			return false
		}
	}
	return true
}

// theCommandsAreGranted compares the commands of docs/tenants.md, README.md and kubeop's messages with the rights of the roles.
func (n *team) theCommandsAreGranted(t *testing.T) {
	documented := map[string][]string{}
	for line := range strings.Lines(content(t, "../docs/tenants.md")) {
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 6 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		text := strings.Trim(cells[1], " `")
		for i, role := range []string{"view", "edit", "admin"} {
			if strings.TrimSpace(cells[2+i]) == "yes" {
				documented[text] = append(documented[text], role)
			} else {
				documented[text] = slices.Clip(documented[text])
			}
		}
	}
	if len(documented) < 35 {
		t.Fatalf("the page documents only %d commands", len(documented))
	}
	app := &v1alpha1.App{}
	app.Namespace, app.Name = "kubeop-acme-shop", "web"
	repository := &v1alpha1.Repository{}
	repository.Name = "acme"
	for _, sentence := range []string{
		command.Again("acme", app, meta.ForceRequestAnnotation),
		command.Annotate(command.Admin.In("acme"), "app", app, v1alpha1.ConfirmAnnotation, "1"),
		command.Annotate(command.Admin.In("acme"), "repository", repository, v1alpha1.ConfirmAnnotation, "1"),
		command.Annotate(command.Admin.In("acme"), "repository", repository, v1alpha1.ConfirmHistoryAnnotation, "1"),
	} {
		who, text, _ := strings.Cut(sentence, " may run: ")
		documented[text] = []string{"admin"}
		if strings.Contains(who, "edit or admin") {
			documented[text] = []string{"edit", "admin"}
		}
	}
	for text, roles := range documented {
		for _, role := range []string{"view", "edit", "admin"} {
			if got, want := n.may(t, role, text), slices.Contains(roles, role); got != want {
				t.Errorf("%s may run %q: %t, documented is %t", role, text, got, want)
			}
		}
	}
	_, check, _ := strings.Cut(content(t, "../README.md"), "check the result:\n\n```sh\n")
	check, _, _ = strings.Cut(check, "```")
	for line := range strings.Lines(check) {
		if text := strings.TrimSpace(line); !n.may(t, "view", text) {
			t.Errorf("the README has a person of the tenant run %q, which is refused", text)
		}
	}
	if check == "" {
		t.Error("the README does not say how to check the result")
	}
}

func content(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
