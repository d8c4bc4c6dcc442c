package evaluate

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/engine"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/delivery/message"
)

// maxLookupBytes limits the answer to one lookup of a template.
const maxLookupBytes = 16 << 20

// lookup is a template's request to the API server. Without a name, it requests a list.
type lookup struct{ APIVersion, Kind, Namespace, Name string }

// Answer answers a template's lookup as Helm does. For a kind or an object that does not exist, the answer is empty.
func Answer(config *rest.Config, question []byte) ([]byte, error) {
	var l lookup
	if err := reader.Read(question, &l); err != nil {
		return nil, fmt.Errorf("reading what to look up: %w", err)
	}
	found, err := engine.NewLookupFunction(config)(l.APIVersion, l.Kind, l.Namespace, l.Name)
	if err != nil {
		return nil, err
	}
	text, err := message.Write(found)
	if len(text) > maxLookupBytes {
		return nil, fmt.Errorf("looking up %s %s: the answer is larger than %d MiB", l.APIVersion, l.Kind, maxLookupBytes>>20)
	}
	return text, err
}

// clients are the clients that Helm's engine gets in the process that renders templates: they send their requests to the parent.
type clients struct {
	ask   func([]byte) ([]byte, error)
	marks *marked
}

// GetClientFor sends no request: a missing kind is reported with the answer to the lookup.
func (c clients) GetClientFor(apiVersion, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return asker{clients: c, lookup: lookup{APIVersion: apiVersion, Kind: kind}}, true, nil
}

// asker is the client of one kind. Helm's engine calls only these methods.
type asker struct {
	dynamic.NamespaceableResourceInterface
	clients
	lookup
}

// Namespace sets the namespace of the lookup.
func (a asker) Namespace(namespace string) dynamic.ResourceInterface {
	a.lookup.Namespace = namespace
	return a
}

// Get requests one object.
func (a asker) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	a.Name = name
	found, err := a.answer()
	return &unstructured.Unstructured{Object: found}, err
}

// List requests all objects.
func (a asker) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	if a.marks.pass(a.APIVersion, a.Kind) {
		return nil, a.none()
	}
	found, err := a.answer()
	if err != nil {
		return nil, err
	}
	list := &unstructured.UnstructuredList{Object: found}
	items, _ := found["items"].([]any)
	for _, item := range items {
		object, ok := item.(map[string]any)
		if !ok {
			return nil, errors.New("an item of the list is no object")
		}
		list.Items = append(list.Items, unstructured.Unstructured{Object: object})
	}
	return list, nil
}

// answer returns a "not found" error if there is no result; Helm's engine turns that into an empty one.
func (a asker) answer() (map[string]any, error) {
	question, err := message.Write(a.lookup)
	if err != nil {
		return nil, err
	}
	answer, err := a.ask(question)
	if err != nil {
		// Pass on only the text, as from another process: Helm's engine turns every "not found" error into an empty result, also if the
		// kind is unknown. The parent keeps the error itself.
		return nil, errors.New(err.Error())
	}
	var found map[string]any
	if err := reader.Read(answer, &found); err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, a.none()
	}
	return found, nil
}

func (a asker) none() error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: a.Kind}, a.Name)
}
