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
	// id is its number in the findings, such as C1; "" of one of our own. name says what is pushed, or done.
	id, name string
	// key is the name of the App, or what the names of several begin with.
	key string
	// ready makes what has to be there before, once for a tenant; nil where nothing has.
	ready func(context.Context, *site) error
	// push returns the files of the attack.
	push func(*site) files
	// does is what is done besides, until the context ends.
	does func(context.Context, *site) error
	// alone keeps other attacks out of its window, as of what is told of many only some is.
	alone bool
	// wants are what people are told, of one or the other.
	wants []want
}

// box is a kind of attacks, by what they attack.
type box struct {
	name    string
	attacks []attack
}

// want is a condition, an event of the API server's refusal aside, that says something.
type want struct {
	// of is App, Project, Repository; name is "" of the attack's own App and of the tenant's Repository.
	of, name string
	// reason is of one of the conditions; "" of any. says is a piece of its message, or of a problem of the Repository.
	reason, says string
}

// told wants a condition of the attack's App.
func told(reason, says string) []want { return []want{{of: "App", reason: reason, says: says}} }

// refused wants a problem in the files.
func refused(says string) []want { return []want{{of: "Repository", says: says}} }

// site is where an attack takes place.
type site struct {
	*tenant
	key string
}

// folder is of an App in the project evil; of several n tells them apart.
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

// happened looks whether an attack was told as it wants.
func (a attack) happened(t *tenant) func(context.Context) error {
	return func(ctx context.Context) error {
		var all error
		for _, w := range a.wants {
			err := w.told(ctx, t, a.key)
			if err == nil {
				return nil
			}
			all = errors.Join(all, err)
		}
		return all
	}
}

func (w want) told(ctx context.Context, t *tenant, key string) error {
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
			if w.reason == "" && strings.Contains(problem, w.says) {
				return nil
			}
			found = append(found, problem)
		}
		object = repository
	}
	for _, c := range object.GetConditions() {
		if (w.reason == "" || c.Reason == w.reason) && strings.Contains(c.Message, w.says) {
			return nil
		}
		found = append(found, c.Type+" "+c.Reason+": "+c.Message)
	}
	return fmt.Errorf("%s %s does not say %s %q but:\n  %s", w.of, name, w.reason, w.says, shorten(strings.Join(found, "\n  ")))
}

// shorten keeps a message readable.
func shorten(text string) string {
	const most = 1200
	if len(text) > most {
		return text[:most] + "…"
	}
	return text
}
