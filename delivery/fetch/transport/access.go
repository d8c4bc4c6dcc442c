package transport

// Access is how a registry is reached. The zero value is anonymous, with TLS.
type Access struct {
	// Auth is sent to the registry, and to the token service that checks it for the registry.
	Auth Auth
	// Insecure connects to the registry without TLS.
	Insecure bool
	// Mirror is asked first; nil is none.
	Mirror *Mirror
}
