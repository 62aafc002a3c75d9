package server

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"

	"github.com/leadership-journal/journald/internal/api"
)

//go:embed assets
var assets embed.FS

// page shows who leads what. It is complete without any script; with one it follows the journal.
type page struct{ template *template.Template }

func newPage() (*page, error) {
	t, err := template.ParseFS(assets, "assets/page.html")
	if err != nil {
		return nil, fmt.Errorf("read the page: %w", err)
	}
	return &page{t}, nil
}

// How much the page shows at most.
const (
	pageGroups     = 200
	pageCandidates = 500
)

// pageData is what the template is filled with.
type pageData struct {
	Sequence   uint64
	Groups     []api.GroupRow // of which there is something to say
	Rows       []api.Row
	Candidates []api.CandidateRow
	More       bool // groups, or candidates
}

// policy of what a page of ours may load, and from where: nothing but its own script and style.
const contentPolicy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func (s *Server) index(w http.ResponseWriter, _ *http.Request) error {
	groups := s.groupRows("", pageGroups)
	data := pageData{Sequence: groups.Sequence, More: groups.Next != ""}
	for _, g := range groups.Groups {
		data.Rows = append(data.Rows, g.Components...)
		data.Candidates = append(data.Candidates, g.Candidates...)
		if len(g.Remarks()) > 0 {
			data.Groups = append(data.Groups, g)
		}
	}
	if len(data.Candidates) > pageCandidates {
		data.Candidates, data.More = data.Candidates[:pageCandidates], true
	}
	var b bytes.Buffer
	if err := s.page.template.Execute(&b, &data); err != nil {
		return fmt.Errorf("fill the page: %w", err)
	}
	secure(w, "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // whoever asked may be gone
	return nil
}

func secure(w http.ResponseWriter, contentType string) {
	h := w.Header()
	h.Set("Content-Type", contentType)
	h.Set("Content-Security-Policy", contentPolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
}

func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	types := map[string]string{"page.js": "text/javascript; charset=utf-8", "page.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}
	name := r.PathValue("name")
	text, err := assets.ReadFile("assets/" + name)
	if err != nil || types[name] == "" {
		return refuse(http.StatusNotFound, "no-route", "there is no such asset")
	}
	secure(w, types[name])
	_, _ = w.Write(text) // whoever asked may be gone
	return nil
}

func (s *Server) openAPI(w http.ResponseWriter, _ *http.Request) error {
	text, err := assets.ReadFile("assets/openapi.json")
	if err != nil {
		return fmt.Errorf("read the description of the API: %w", err)
	}
	secure(w, "application/json")
	_, _ = w.Write(text) // whoever asked may be gone
	return nil
}
