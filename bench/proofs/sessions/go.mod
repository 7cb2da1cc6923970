module example.org/sessions

go 1.21
