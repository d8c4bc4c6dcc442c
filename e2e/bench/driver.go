package main

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// driver delivers apps with kubeop or with Flux.
type driver interface {
	// deliver declares exactly these apps. It returns the time at which they were declared, when their latency begins.
	deliver(ctx context.Context, apps []app) (time.Time, error)
	// progress reads the object of an app.
	progress(o *unstructured.Unstructured) progress
	// stop stops the controllers, and start starts them with empty caches. errNoRestart means that the driver may not.
	stop() error
	start(ctx context.Context) error
	// subject returns what to measure, and how to observe it.
	subject() subject
}

// place is the resource and namespace of the apps' objects.
type place struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// subject describes the measured controllers, and how to observe them.
type subject struct {
	// Config connects as a user who may watch and annotate the objects of apps.
	Config *rest.Config
	Apps   place
	// AuditLog is the API server's audit log, or "" if it cannot be read. Users are the users of the controllers.
	AuditLog string
	Users    []string
	// Metrics are the URLs of the controllers' metrics. Controller is the name of the apps' controller in these.
	Metrics    []string
	Controller string
	// PID returns the process ID of the only controller, or 0 if it does not run on this machine.
	PID func() int
}
