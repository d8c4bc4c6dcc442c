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
	// deliver asks for exactly these apps and returns when it has asked: when the latency of each begins.
	deliver(ctx context.Context, apps []app) (time.Time, error)
	// progress reads an object that stands for an app.
	progress(o *unstructured.Unstructured) progress
	// stop stops the controllers, and start starts them with empty caches. errNoRestart means that the driver may not.
	stop() error
	start(ctx context.Context) error
	// subject says where to look.
	subject() subject
}

// place is where the objects of apps are.
type place struct {
	Resource  schema.GroupVersionResource
	Namespace string
}

// subject is what is measured, and how it is seen.
type subject struct {
	// Config connects as a user who may watch and annotate the objects of apps.
	Config *rest.Config
	Apps   place
	// AuditLog is the API server's audit log, or "" if it cannot be read. Users are the users of the controllers.
	AuditLog string
	Users    []string
	// Metrics are the URLs of the controllers' metrics, Controller is the name of the one for apps in them.
	Metrics    []string
	Controller string
	// PID is the process of the only controller where it runs on this machine, 0 where it does not.
	PID func() int
}
