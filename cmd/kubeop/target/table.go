package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/kubeop/kubeop/api/v1alpha1"
)

// Tables reads objects as the tables that the API server makes of them, so that the columns are those of kubectl get.
type Tables struct{ rest rest.Interface }

// Tables returns a reader of tables.
func (c *Connection) Tables() (*Tables, error) {
	config, err := c.Config()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.APIPath, config.GroupVersion = "/apis", &v1alpha1.GroupVersion
	// The scheme has what every answer can be, such as a Status with the reason of an error.
	scheme := runtime.NewScheme()
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.AcceptContentTypes = "application/json;as=Table;v=v1;g=meta.k8s.io"
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connecting to the cluster: %w", err)
	}
	return &Tables{rest: client}, nil
}

// Read returns the table of a selection.
func (t *Tables) Read(ctx context.Context, of Selection) (*metav1.Table, error) {
	answer := t.request(of).Do(ctx)
	if err := answer.Error(); err != nil {
		return nil, fmt.Errorf("reading the table of %s: %w", of.Kind.Plural, err)
	}
	data, err := answer.Raw()
	if err != nil {
		return nil, fmt.Errorf("reading the table of %s: %w", of.Kind.Plural, err)
	}
	table := &metav1.Table{}
	if err := json.Unmarshal(data, table); err != nil {
		return nil, fmt.Errorf("reading the table of %s: %w", of.Kind.Plural, err)
	}
	return table, nil
}

// Watch calls changed with each row that changes after a version of the selection, until the API server ends the watch. deleted: the object of the
// row is gone.
func (t *Tables) Watch(ctx context.Context, of Selection, version string, changed func(row metav1.TableRow, deleted bool)) error {
	request := t.request(Selection{Kind: of.Kind, Namespace: of.Namespace}).Param("watch", "true").Param("resourceVersion", version)
	if of.Name != "" {
		request.Param("fieldSelector", "metadata.name="+of.Name)
	}
	stream, err := request.Stream(ctx)
	if err != nil {
		return fmt.Errorf("watching %s: %w", of.Kind.Plural, err)
	}
	// Nothing was written, so closing cannot lose anything.
	defer func() { _ = stream.Close() }()
	decoder := json.NewDecoder(stream)
	for {
		var event metav1.WatchEvent
		if err := decoder.Decode(&event); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || ctx.Err() != nil {
				return ctx.Err()
			}
			return fmt.Errorf("watching %s: %w", of.Kind.Plural, err)
		}
		if event.Type == string(watch.Error) {
			status := metav1.Status{}
			if err := json.Unmarshal(event.Object.Raw, &status); err != nil {
				return fmt.Errorf("watching %s: %w", of.Kind.Plural, err)
			}
			return fmt.Errorf("watching %s: %w", of.Kind.Plural, apierrors.FromObject(&status))
		}
		table := metav1.Table{}
		if err := json.Unmarshal(event.Object.Raw, &table); err != nil {
			return fmt.Errorf("watching %s: %w", of.Kind.Plural, err)
		}
		for _, row := range table.Rows {
			changed(row, event.Type == string(watch.Deleted))
		}
	}
}

func (t *Tables) request(of Selection) *rest.Request {
	request := t.rest.Get().Resource(of.Kind.Plural).NamespaceIfScoped(of.Namespace, of.Namespace != "")
	if of.Name != "" {
		request.Name(of.Name)
	}
	return request
}
