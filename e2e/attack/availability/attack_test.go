//go:build e2e

package availability

import (
	"context"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// attack is a row of the table.
type attack struct {
	// name describes what is pushed or done.
	name string
	// key is the name of the App, or the prefix of the names of several.
	key string
	// ready creates what must exist before the attack, once for each tenant. It may be nil.
	ready func(context.Context, *site) error
	// push returns the files of the attack.
	push func(*site) files
	// does runs besides the push until the context ends.
	does func(context.Context, *site) error
	// alone runs the attack in its own window, because only some of its many Apps report an error.
	alone bool
	// wants are the expected reports. One of them is enough.
	wants []want
}

// box groups attacks by what they attack.
type box struct {
	name    string
	attacks []attack
}

// want is a condition, or a problem of the Repository, that must be reported.
type want struct {
	// of is App, Project or Repository. An empty name means the attack's own App or the tenant's Repository.
	of, name string
	// reason is the reason of a condition, or "" for any. message is a part of its message or of a problem of the Repository.
	reason, message string
}

// appReports expects a condition of the attack's App.
func appReports(reason, message string) []want {
	return []want{{of: "App", reason: reason, message: message}}
}

// refused expects a problem in the files.
func refused(message string) []want { return []want{{of: "Repository", message: message}} }

// site is the tenant and the Apps of an attack.
type site struct {
	*tenant
	key string
}

// folder is the folder of an App in the project evil. n distinguishes several Apps.
func (s *site) folder(n ...int) string {
	return "projects/evil/apps/" + s.app(n...)
}

func (s *site) app(n ...int) string {
	name := s.key
	for _, one := range n {
		name += fmt.Sprint("-", one)
	}
	return name
}

// declare returns the app.yaml of an App.
func (s *site) declare(spec string, n ...int) files {
	spec = strings.NewReplacer("$url", s.repo.OperatorURL, "$host", hostile.address, "$silent", hostile.silent, "$folder", s.folder(n...)).Replace(spec)
	return files{s.folder(n...) + "/app.yaml": []byte(fmt.Sprintf(declared, "App", s.app(n...)) + "spec:\n" + spec)}
}

// reported checks that one of the wants is reported.
func (a attack) reported(t *tenant) func(context.Context) error {
	return func(ctx context.Context) error {
		var all error
		for _, w := range a.wants {
			err := w.check(ctx, t, a.key)
			if err == nil {
				return nil
			}
			all = errors.Join(all, err)
		}
		return all
	}
}

func (w want) check(ctx context.Context, t *tenant, key string) error {
	name := w.name
	if name == "" {
		name = key
	}
	var object interface {
		client.Object
		GetConditions() []metav1.Condition
	}
	var found []string
	switch w.of {
	case "App":
		object = &v1alpha1.App{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: t.namespace("evil"), Name: name}, object); err != nil {
			return err
		}
	case "Project":
		object = &v1alpha1.Project{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Namespace: v1alpha1.HomeNamespace(t.name), Name: name}, object); err != nil {
			return err
		}
	default:
		repository := &v1alpha1.Repository{}
		if err := platform.Client.Get(ctx, client.ObjectKey{Name: t.name}, repository); err != nil {
			return err
		}
		for _, problem := range repository.Status.Problems {
			if w.reason == "" && strings.Contains(problem, w.message) {
				return nil
			}
			found = append(found, problem)
		}
		object = repository
	}
	for _, c := range object.GetConditions() {
		if (w.reason == "" || c.Reason == w.reason) && strings.Contains(c.Message, w.message) {
			return nil
		}
		found = append(found, c.Type+" "+c.Reason+": "+c.Message)
	}
	return fmt.Errorf("%s %s does not say %s %q but:\n  %s", w.of, name, w.reason, w.message, shorten(strings.Join(found, "\n  ")))
}

// shorten keeps a message readable.
func shorten(text string) string {
	const most = 1200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
