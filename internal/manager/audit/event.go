package audit

import "time"

// Event is a record of one write.
type Event struct {
	ID        int64     `json:"id"`
	At        time.Time `json:"at"`
	Actor     string    `json:"actor" doc:"The id of the caller's token, jwt: with the id of a JWT, user: with the name of a person, or setup."`
	Action    string    `json:"action" doc:"The id of the operation." example:"createToken"`
	Object    string    `json:"object" doc:"What it was made on."`
	Tenant    string    `json:"tenant,omitempty"`
	Address   string    `json:"address" doc:"Where the request came from."`
	RequestID string    `json:"requestId"`
	Commit    string    `json:"commit,omitempty" doc:"The commit that the write made."`
}
